"""Mutates the modules that decide and score, one place at a time, and runs their tests on each mutant."""
