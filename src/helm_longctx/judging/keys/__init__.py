"""Keys of judges: where they are looked up, and access tokens that are renewed."""
