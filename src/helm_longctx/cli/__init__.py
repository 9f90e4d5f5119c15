"""The `helm-longctx` command. `main` registers the sub-commands; related ones share a module."""
