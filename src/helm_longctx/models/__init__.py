"""The baseline models that read only the prompt, and a HELM client for Hugging Face models in this process."""
