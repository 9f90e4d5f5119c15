"""Tests of `compaction`."""
