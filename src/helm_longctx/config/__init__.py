"""Configurations of runs: YAML files and options, the plan that they make, and what commands share."""
