"""Replaces secrets and personal details in texts by placeholders, and says what was replaced.

Rules find secrets, addresses of mail, telephone numbers, IP addresses, numbers of cards and accounts, and names of users
in paths. They find no names of people, companies or projects: these are words that the user gives.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import partial

from helm_longctx.redaction.text import replace_secrets

_SHOWN = 2
_SHORT = 8
"""Characters of a replaced text that are shown: one of a text that is shorter than `_SHORT`."""


@dataclass
class Replaced:
    """A text that was replaced.

    Args:
        placeholder: what stands in its place. Equal texts have the same placeholder.
        shown: its first characters and its length. The text itself is kept nowhere.
        times: how often it was replaced.
        first: where it was first.
    """

    kind: str
    placeholder: str
    shown: str
    times: int
    first: str


def _is_number(digits: str) -> bool:
    """Whether digits are those of a payment card (Luhn's checksum)."""
    total = 0
    for position, digit in enumerate(reversed(digits)):
        value = int(digit) * (1 + position % 2)
        total += value - 9 * (value > 9)
    return total % 10 == 0


def _is_card(text: str) -> bool:
    digits = re.sub(r"\D", "", text)
    return 13 <= len(digits) <= 19 and len(set(digits)) > 1 and _is_number(digits)


def _is_account(text: str) -> bool:
    """Whether a text is an international bank account number (ISO 13616)."""
    letters = text.replace(" ", "")
    moved = letters[4:] + letters[:4]
    return int("".join(str(int(character, 36)) for character in moved)) % 97 == 1


def _is_address(text: str) -> bool:
    """Whether a text is an IP address of a machine: not one of this machine, and no mask."""
    numbers = [int(part) for part in text.split(".")]
    is_whole = all(number < 256 for number in numbers)
    return is_whole and numbers[0] not in (0, 127, 255)


def _is_mail(text: str) -> bool:
    """Whether an address is one of mail: `git@` begins addresses of repositories."""
    return not text.startswith("git@")


def _is_any(text: str) -> bool:
    return True


@dataclass(frozen=True)
class _Rule:
    """How details of a kind are found.

    Args:
        pattern: what a detail looks like. If it has a group, only the last group is replaced.
        is_right: whether a text that looks like a detail is one.
        hints: texts without which the pattern cannot match; empty if there are none.
    """

    kind: str
    pattern: re.Pattern[str]
    is_right: Callable[[str], bool] = _is_any
    hints: tuple[str, ...] = ()


_MAIL = re.compile(
    r"(?<![\w.+-])[\w.+-]{1,64}@[\w-]{1,63}(?:\.[\w-]{1,63}){1,5}",
)
_USER = re.compile(
    r"(?:/home/|/Users/|:\\{1,2}Users\\{1,2})(?!Shared\b)([\w.-]{1,64})",
)
_ACCOUNT = re.compile(
    r"(?<!\w)[A-Z]{2}\d{2}(?: ?[A-Z0-9]{4}){3,7}(?: ?[A-Z0-9]{1,3})?(?!\w)"
)
_CARD = re.compile(r"(?<![\w.-])\d(?:[ -]?\d){12,18}(?![\w.-])")
_PHONE = re.compile(
    r"(?<![\w.+])(?:\+\d{1,3}(?:[ .()/-]{0,2}\d){7,13}|\(\d{3}\) ?\d{3}-\d{4}|\d{3}-\d{3}-\d{4})(?![\w-])"
)
_IP = re.compile(r"(?<![\w.-])(?:\d{1,3}\.){3}\d{1,3}(?![\w.-]*\w)")

_RULES = (
    _Rule("email", _MAIL, _is_mail, hints=("@",)),
    _Rule("user", _USER, hints=("/home/", "/Users/", ":\\Users\\")),
    _Rule("account", _ACCOUNT, _is_account),
    _Rule("card", _CARD, _is_card),
    _Rule("phone", _PHONE),
    _Rule("ip", _IP, _is_address),
)


class Redactor:
    """Replaces secrets and personal details in many texts. Equal details get equal placeholders.

    Args:
        words: further words to replace, such as names. Only whole words are replaced, in upper and lower case.
    """

    def __init__(self, words: Iterable[str] = ()):
        # The longest first, because a part of a longer word would leave the rest.
        escaped = []
        for word in sorted(words, key=len, reverse=True):
            escaped.append(re.escape(word))
        self._words = None
        if escaped:
            pattern = rf"(?<!\w)(?:{'|'.join(escaped)})(?!\w)"
            self._words = re.compile(pattern, re.IGNORECASE)
        self._replaced: dict[tuple[str, str], Replaced] = {}
        self._counts: Counter[str] = Counter()

    @property
    def replacements(self) -> list[Replaced]:
        """All that was replaced, in order."""
        return list(self._replaced.values())

    def redact(self, text: str, where: str = "") -> str:
        """Return a text with placeholders.

        Args:
            where: where the text stands, for the user.
        """
        if self._words:
            text = self._words.sub(
                lambda match: self._name("word", where, match[0].lower()), text
            )
        text = replace_secrets(text, partial(self._name, "secret", where))
        for rule in _RULES:
            if rule.hints and not any(hint in text for hint in rule.hints):
                continue
            text = rule.pattern.sub(partial(self._replace_match, rule, where), text)
        return text

    def _replace_match(
        self,
        rule: _Rule,
        where: str,
        match: re.Match[str],
    ) -> str:
        group = match.re.groups
        detail = match[group]
        if not rule.is_right(detail):
            return match[0]
        start = match.start(group) - match.start()
        end = match.end(group) - match.start()
        return (
            f"{match[0][:start]}{self._name(rule.kind, where, detail)}{match[0][end:]}"
        )

    def _name(
        self,
        kind: str,
        where: str,
        detail: str,
    ) -> str:
        """Return the placeholder of a detail."""
        known = self._replaced.get((kind, detail))
        if known is None:
            self._counts[kind] += 1
            number = self._counts[kind]
            shown = detail[: _SHOWN if len(detail) >= _SHORT else 1]
            shown = f"{shown}… ({len(detail)} characters)"
            known = Replaced(kind, f"[{kind} {number}]", shown, 0, where)
            self._replaced[kind, detail] = known
        known.times += 1
        return known.placeholder
