"""Statistics on numbers: intervals, paired comparisons, rankings, correlations, effective length. It imports no HELM.

docs/statistics.md has the formulas and their sources.
"""
