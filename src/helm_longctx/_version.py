"""The package's version, apart so that a build can read it without importing HELM."""

VERSION = "0.1.0"
