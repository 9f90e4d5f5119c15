"""LongProc: long procedural generation, six tasks graded by the length of the output."""
