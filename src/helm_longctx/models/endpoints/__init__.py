"""Endpoints: finds out what a server with the protocol of a provider offers, and writes it to HELM's files."""
