"""OpenAI's MRCR: multi-round co-reference resolution in long conversations."""
