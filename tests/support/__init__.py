"""Gives what several tests need: servers, fabricated data, official code."""
