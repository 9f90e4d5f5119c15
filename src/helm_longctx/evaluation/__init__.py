"""Evaluation from Python: `helm_longctx.evaluate` makes the runs of `helm-longctx run` with models that are objects."""
