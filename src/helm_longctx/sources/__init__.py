"""Benchmark data: where it comes from, how it is downloaded and checked, and how its files are read."""
