"""HELMET (arXiv 2410.02694): seven categories of long-context tasks."""
