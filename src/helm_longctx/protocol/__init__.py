"""The task model: tasks, run entries, lengths, prompts and their cutting. Imports no HELM and names no benchmark."""
