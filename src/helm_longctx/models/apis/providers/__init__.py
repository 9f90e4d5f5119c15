"""The providers, one file for each: its client, its batches and its record `PROVIDER`. A new file needs no list."""
