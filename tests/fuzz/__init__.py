"""Mutated input for everything that reads input: `make fuzz`, or `python -m tests.fuzz`. CONTRIBUTING.md describes it."""
