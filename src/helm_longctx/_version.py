"""The package's version, in a module of its own so that a build can read it without importing HELM."""

VERSION = "1.0.0"
