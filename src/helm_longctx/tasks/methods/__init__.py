"""Methods: ways to ask the questions of tasks. Each method is a module."""
