"""Tests that follow the extension guides word for word."""
