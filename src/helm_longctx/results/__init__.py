"""Reads the scores of a suite, chooses those that count, averages and compares them."""
