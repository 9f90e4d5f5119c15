"""Judges: who says what a metric cannot compute."""
