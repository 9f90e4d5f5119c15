"""AA-LCR: Artificial Analysis' long-context reasoning, as NVIDIA packages it."""
