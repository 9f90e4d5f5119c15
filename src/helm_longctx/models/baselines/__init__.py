"""HELM clients of the baseline models. They read only the prompt."""
