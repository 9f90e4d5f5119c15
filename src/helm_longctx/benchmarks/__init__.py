"""A folder for each benchmark of this package. `helm_longctx.tasks.registry` finds them."""
