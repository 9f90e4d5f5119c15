"""The format of a run's folder, written and read in one place."""
