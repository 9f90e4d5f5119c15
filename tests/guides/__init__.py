"""Tests that run the commands of the tutorials and how-to guides as readers would."""
