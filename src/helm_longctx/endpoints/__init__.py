"""Endpoints: finds out what a server with OpenAI's or Anthropic's protocol offers, and writes it to HELM's files."""
