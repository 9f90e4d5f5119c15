"""Every format of a number, an interval, a mark or a unit, and the escapes of Markdown and LaTeX."""

import math
import re
from collections.abc import Callable
from typing import Protocol

from helm_longctx.redaction.abbreviation import is_invisible

MARK = "†"
"""Marks a score that is not comparable."""

DASH = "–"
"""Stands for a number that is not known or does not exist."""

_TEX = {
    **{
        "\\": r"\textbackslash{}",
        "~": r"\textasciitilde{}",
        "^": r"\textasciicircum{}",
        "†": r"\dag{}",
        "±": r"$\pm$",
    },
    **{character: f"\\{character}" for character in "&%$#_{}"},
}


class _HasEnds(Protocol):
    """An interval. Ends that are not known are NaN."""

    @property
    def low(self) -> float:
        """The lower end."""

    @property
    def high(self) -> float:
        """The upper end."""


class Bounded(_HasEnds, Protocol):
    """A number with its interval."""

    @property
    def mean(self) -> float:
        """The number."""


def drop_nan(value: float) -> float | None:
    """Return a number for JSON, which has no NaN: None in its place."""
    return None if math.isnan(value) else value


def format_percent(value: float) -> str:
    """Return a score in percent with one decimal, as people read it."""
    return f"{100 * value:.1f}"


def format_signed_percent(value: float) -> str:
    """Return a difference of scores in points with one decimal and its sign, `+` if it is rounded to 0."""
    return f"{round(100 * value, 1) + 0.0:+.1f}"


def format_points(margin: float) -> str:
    """Return a margin for readers, such as "2 points"."""
    return f"{100 * margin:g} point{'' if margin == 0.01 else 's'}"


_SIGNS = ("+", "-", "−")


def format_range(
    low: float,
    high: float,
    show: Callable[[float], str] = format_percent,
) -> str:
    """Return the range of an interval, such as `86.1–100.0` or `-3.0 to +1.5`. It is empty if its ends are not known."""
    if math.isnan(high - low):
        return ""
    start = show(low)
    end = show(high)
    # A dash before or after a sign would look like another minus.
    is_signed = start.startswith(_SIGNS) or end.startswith(_SIGNS)
    if is_signed:
        return f"{start} to {end}"
    return f"{start}–{end}"


def format_ends(
    interval: _HasEnds,
    show: Callable[[float], str] = format_percent,
) -> str:
    """Return the range of an interval. See `format_range`."""
    return format_range(interval.low, interval.high, show)


def format_interval(
    interval: Bounded,
    show: Callable[[float], str] = format_percent,
    is_marked: object = False,
) -> str:
    """Return a mean such as `54.2 (45.1–63.3)`, or only `54.2` if its interval is not known."""
    return add_in_brackets(
        add_mark(show(interval.mean), is_marked),
        format_ends(interval, show),
    )


def add_in_brackets(text: str, detail: str) -> str:
    """Return a text with a detail in brackets; the text alone if there is no detail."""
    if detail:
        return f"{text} ({detail})"
    return text


def add_mark(text: str, is_marked: object = True) -> str:
    """Return the text of a score, with the mark if the score is not comparable."""
    if is_marked:
        return f"{text} {MARK}"
    return text


def format_decimals(value: float, digits: int = 2) -> str:
    """Return a number that is no share, such as a correlation; a dash if it is not known."""
    if math.isnan(value):
        return DASH
    return f"{value:.{digits}f}"


def format_tenths(value: float) -> str:
    """Return a number with one decimal."""
    return format_decimals(value, 1)


def format_signed_decimals(value: float) -> str:
    """Return a number with its sign and two decimals."""
    return f"{value:+.2f}"


def format_share(value: float) -> str:
    """Return a round share for a sentence, such as `85%`."""
    return f"{value:.0%}"


def format_p(p_value: float) -> str:
    """Return a p-value for a table, such as `0.0312` or `< 0.0001`."""
    if p_value < 0.0001:
        return "< 0.0001"
    return f"{p_value:.4f}"


def format_p_statement(p_value: float) -> str:
    """Return a p-value for a sentence, such as `p = 0.031` or `p < 0.001`."""
    if p_value < 0.001:
        return "p < 0.001"
    return f"p = {p_value:.3f}"


def format_amount(value: float | None) -> str:
    """Return a number of tokens or dollars, also a small one, or a dash if it is not known."""
    if value is None:
        return DASH
    if value >= 100:
        return f"{value:,.0f}"
    return f"{value:.3g}"


def format_count(value: float) -> str:
    """Return a number of things, such as `12,345`; of a mean without decimals."""
    return f"{round(value):,}"


def one_line(text: str) -> str:
    """Return a text without line breaks and invisible characters, such as those that reverse the direction of text."""
    if text.isprintable():  # as nearly all names are, and they are shown very often
        return " ".join(text.split())
    seen = "".join(" " if is_invisible(character) else character for character in text)
    return " ".join(seen.split())


def escape_markdown(text: str) -> str:
    """Escape characters that are markup in Markdown, and those that would end a table's row."""
    return re.sub(r"([\\`*_\[\]<>|#~])", r"\\\1", one_line(text))


def escape_tex(text: str) -> str:
    """Escape characters that are commands in LaTeX."""
    return "".join(_TEX.get(character, character) for character in one_line(text))
