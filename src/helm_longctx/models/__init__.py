"""Baseline models, which read nothing but the prompt; and a client for Hugging Face models in this process."""
