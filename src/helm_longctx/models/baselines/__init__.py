"""The baseline models, which read only the prompt, as HELM clients."""
