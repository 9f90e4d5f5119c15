"""Keeps keys, tokens and prompts out of logs, errors and results."""
