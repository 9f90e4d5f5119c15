"""Cuts prompts that do not fit: at the end of the context (HELMET) or in the middle (LV-Eval)."""
