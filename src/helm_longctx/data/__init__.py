"""Benchmark data: the kinds of sources, downloads with checks, and readers of files."""
