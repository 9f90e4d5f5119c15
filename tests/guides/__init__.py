"""The tutorials and how-to guides, whose commands are run as they stand."""
