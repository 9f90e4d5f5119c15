"""Baseline models: no neural network, no key, no GPU. They read nothing but the prompt."""
