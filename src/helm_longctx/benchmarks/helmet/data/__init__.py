"""Loaders: official files or hub data, or generators of the same form, to examples. No HELM type here."""
