"""Runs official code, and writes what it returned beside the tests that compare it with ours (CONTRIBUTING.md)."""
