"""Tests of run configurations."""
