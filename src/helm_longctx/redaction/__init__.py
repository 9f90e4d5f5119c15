"""No key, token or secret in logs, errors and results."""
