"""Asks the questions of a certificate: how long a context an endpoint really uses."""
