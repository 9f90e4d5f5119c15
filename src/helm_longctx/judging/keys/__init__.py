"""Keys of judges: where they are found, and tokens that are renewed."""
