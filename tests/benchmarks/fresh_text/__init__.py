"""Tests of fresh text."""
