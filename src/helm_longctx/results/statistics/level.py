"""The confidence level of all intervals, and of every word about them."""

LEVEL = 0.95

LEVEL_TEXT = f"{100 * LEVEL:g} %"
"""The level as texts show it, such as "95 %"."""

SIGNIFICANCE = round(1 - LEVEL, 10)
"""Two models are tied if the p-value, corrected for the number of tests, is not below this."""

SIGNIFICANCE_TEXT = f"{100 * SIGNIFICANCE:g} %"
"""The significance as texts show it, such as "5 %"."""

ABOUT_SCORES = f"Scores are percentages; intervals are at the {LEVEL_TEXT} level."
