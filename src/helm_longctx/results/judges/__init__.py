"""Checks a judge with answers whose correct verdict is known."""
