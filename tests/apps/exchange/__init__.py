"""Tests of files of other programs."""
