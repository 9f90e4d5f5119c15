"""Generic machinery: nothing here knows a benchmark by name."""
