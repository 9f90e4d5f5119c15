"""HELMET's tasks, by category."""
