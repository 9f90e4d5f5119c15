"""Loaders: they make examples from official files, hub data or generators. They use no HELM type."""
