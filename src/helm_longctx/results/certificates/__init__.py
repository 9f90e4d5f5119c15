"""Decides how long a context an endpoint really uses: which questions to ask next, and what the answers show.

Nothing here sends a request; `runner.certification` does.
"""
