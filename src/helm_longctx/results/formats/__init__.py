"""Files of other programs: exports of a suite, and imports that become runs and published results of a suite."""
