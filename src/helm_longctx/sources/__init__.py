"""Where data comes from: a mirror folder, a cache with the same layout, and the hub that fills the cache."""
