"""Configurations of `helm-longctx run`, and the deployments and run-entry files that come with the package."""
