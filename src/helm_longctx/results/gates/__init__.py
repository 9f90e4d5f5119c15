"""The results of `helm-longctx gate`: two deployments, or one twice, on identical requests."""
