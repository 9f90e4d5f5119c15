"""The extension guides, followed word for word."""
