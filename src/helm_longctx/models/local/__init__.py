"""A HELM client for Hugging Face models in this process."""
