"""LV-Eval (arXiv 2402.05136): bilingual question answering at five lengths, with confusing facts."""
