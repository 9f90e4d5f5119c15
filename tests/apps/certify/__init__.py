"""Tests of certificates of the context's length."""
