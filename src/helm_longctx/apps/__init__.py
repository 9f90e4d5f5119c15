"""Analyses, a folder each: what it computes, the sections that it shows, and its command. Nothing else imports one.

`app.py` has the record that each folder's `__init__.py` makes, and finds these records, also in other packages.
"""
