"""Sends the requests of runs as batches, and puts the answers where the runner finds them."""
