"""Finds characters that readers do not see, such as those that control a terminal or reverse the direction of text."""

from __future__ import annotations

import unicodedata

_INVISIBLE = ("Cc", "Cf", "Cs")
"""Unicode's categories of control characters, of marks for the layout, and of lone surrogates."""

_NO_XML = "\ufffe\uffff"
"""Further characters that XML does not allow. The package that draws plots ends the process if it meets one."""


def is_invisible(character: str) -> bool:
    """Whether a character is a control character, a mark for the layout, or not allowed in XML."""
    return unicodedata.category(character) in _INVISIBLE or character in _NO_XML


def escape_invisible(text: str) -> str:
    """Return a text for a terminal: invisible characters except line breaks are escapes, such as `\\x1b`."""
    return "".join(
        character.encode("unicode_escape").decode() if is_invisible(character) and character != "\n" else character
        for character in text
    )
