"""Endpoints: what a server with OpenAI's or Anthropic's protocol offers, and how HELM gets to know it."""
