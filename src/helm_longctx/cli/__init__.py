"""The `helm-longctx` command: one module a sub-command."""
