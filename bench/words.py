"""Words of fabricated texts."""

COMMON_WORDS = (
    "the",
    "of",
    "river",
    "town",
    "north",
    "built",
    "king",
    "year",
    "first",
    "school",
    "near",
    "house",
    "music",
)
