"""Judges: models that grade answers where no metric can be computed."""
