"""Tests of tool calls."""
