"""Replaces keys, tokens and passwords in text: the exact values in use, and strings that have the format of a secret.

No maintained library offers such patterns for use at run time. Scanners of repositories guess by entropy, which gives
false positives in prose. So this module has a table of common formats. Providers register the formats of their keys
(`models/apis/provider.py`), except the two below: an error may need redaction before any provider is imported.
"""

import base64
import json
import math
import os
import re
import threading
from collections.abc import Callable, Mapping
from functools import cache, lru_cache, partial
from typing import Any, NamedTuple
from urllib.parse import parse_qsl, quote, quote_plus, unquote, urlsplit

MARK = "[redacted]"

_SHORTEST = 8
"""Length in characters of the shortest value that is replaced. Shorter ones (`EMPTY`) also occur in ordinary text."""

_MOST_KEPT = 1000
"""Characters of a text whose redacted form is kept in memory for the next time."""

SECRET_NAME = re.compile(r"(key|token|secret|password|passwd)$", re.IGNORECASE)
"""Names of environment variables and credentials whose values are secrets."""

SECRET_ARGUMENT = re.compile(
    r"(keys?|tokens?|secrets?|passw(or)?d|passphrase|credentials?|auth|authorization|cookies?|sig(nature)?)$",
    re.I,
)
"""Names of client arguments and of URL parameters whose values are secrets."""

_HEADERS = re.compile(r"headers?$", re.I)
"""Names of arguments that hold HTTP headers. Gateways invent header names, so every value counts as a secret."""

_PLAIN_HEADER = re.compile(
    r"(accept(-.*)?|content-type|user-agent|http-referer|referer|x-title|.*-(beta|version))$",
    re.I,
)
"""Headers whose values are not secrets."""

_SPECIAL_TOKEN = re.compile(r"<[^<>]*>")
"""Special tokens of tokenizers such as `<|endoftext|>`. They are values of arguments named `…token` but not secrets."""

_NAMED = (
    r"(?i:(?:api|access|account|private|subscription)[-_ ]?key|client[-_]?secret|passw(?:or)?d|id[-_]?token"
    r"|(?:access|auth|bearer|refresh|session|security|api)[-_]?token)"
)
"""Names of values that are secrets, if `:` or `=` stands between name and value."""

_IN_QUOTES = r"\\{0,3}[\"']?"
"""An optional quote; in JSON within JSON it is escaped."""

_IS = rf"(?: provided)?{_IN_QUOTES}\s{{0,3}}[:=]\s{{0,3}}{_IN_QUOTES}"

# A secret value. It is not an earlier `MARK`, and has no characters that end a value in JSON, URLs and headers.
_VALUE = r"""(?!\[redacted\])[^\s"'&,;}\\]{8,}"""

_WITH_DIGIT = r"(?=[\w.*~+/=%-]{0,200}\d)"
"""Requires a digit in the value. Used after names that are also ordinary words (`token`), so that prose is kept."""

# Each row has literals, a pattern and its replacement. A pattern cannot match a text without one of its literals, and
# a search for literals is fast in long texts. Patterns begin with literals, and their long parts come last or are
# bounded, so that backtracking cannot make the time grow faster than the text.
_PATTERNS = [
    (["hf_"], r"hf_[A-Za-z0-9]{20,}", MARK),  # Hugging Face
    (
        ["AIza", "ya29.", "AQ."],
        r"AIza[\w-]{30,}|ya29\.[\w-]{20,}|AQ\.[\w-]{30,}",
        MARK,
    ),  # Google
    (
        ["AKIA", "ASIA", "ABSK"],
        r"(?:AKIA|ASIA)[A-Z0-9]{16}|ABSK[A-Za-z0-9+/=]{40,}",
        MARK,
    ),  # Amazon
    (["nvapi-", "xai-"], r"(?:nvapi|xai)-[\w-]{20,}", MARK),
    (
        ["fw_", "dapi"],
        r"fw_(?=[A-Za-z]{0,99}\d)[A-Za-z0-9]{20,}|dapi[0-9a-f]{32}",
        MARK,
    ),  # Fireworks, Databricks
    (
        ["gsk_", "pplx-", "tgp_v1_", "r8_"],
        r"(?:gsk_|pplx-|tgp_v1_|r8_)[A-Za-z0-9-]{20,}",
        MARK,
    ),
    (
        ["gh", "github_pat_", "glpat-"],
        r"gh[oprsu]_[A-Za-z0-9]{36,}|github_pat_\w{22,}|glpat-[\w-]{20,}",
        MARK,
    ),
    (["xox"], r"xox[abeoprs]-(?=[A-Za-z-]{0,99}\d)[\w-]{10,}", MARK),  # Slack
    (["eyJ"], r"eyJ[\w-]{8,400}\.[\w-]{8,}(?:\.[\w-]*)?", MARK),  # a JSON web token
    (
        ["PRIVATE KEY-"],
        r"-----BEGIN [A-Z ]{0,20}PRIVATE KEY-----(?:[^-]*-----END [A-Z ]*PRIVATE KEY-----)?",
        MARK,
    ),
    (
        ["://"],
        r"://[^\s/:@]{0,200}:[^\s/@]{1,200}@",
        f"://{MARK}@",
    ),  # user and password in an address
    (
        ["earer ", "EARER "],
        r"(Bearer|bearer|BEARER) +(?=[A-Za-z._~+/=-]{0,200}\d)[\w.~+/=-]{8,}",
        rf"\1 {MARK}",
    ),
    (
        ["asic ", "ASIC "],
        r"(Basic|basic|BASIC) +(?=[A-Za-z+/]{0,200}[\d=])[A-Za-z0-9+/=]{12,}",
        rf"\1 {MARK}",
    ),
    # A key that a provider quotes with stars for a part: the rest is secret too.
    (["****"], r"[\w.-]{2,40}\*{4,}[\w-]{0,40}|(?<!\*)\*{4,}[\w-]{2,40}", MARK),
    (
        ["uthorization", "UTHORIZATION"],
        rf"((?i:authorization){_IS}(?:(?i:bearer|basic) +|(?:\w{{1,20}} +)?{_WITH_DIGIT})){_VALUE}",
        rf"\1{MARK}",
    ),
    (
        ["secret", "token"],
        rf"([\"'](?:secret|token){_IS}){_WITH_DIGIT}{_VALUE}",
        rf"\1{MARK}",
    ),
    (
        ["?", "&"],
        rf"([?&](?:key|token|sig|signature|code|[\w-]{{1,30}}-key)=){_WITH_DIGIT}{_VALUE}",
        rf"\1{MARK}",
    ),
    ([":", "="], rf"({_NAMED}{_IS}){_VALUE}", rf"\1{MARK}"),
]


_OMISSIONS = ("*", "…", "...")

_QUOTED = r"(?<![\w.~+-])([\w.~+-]{4,200}?)(?:\*+|…|\.{3,})[\w-]*"
"""A word whose end is left out. Servers quote keys in this way."""


class SecretFormat(NamedTuple):
    """The format of a provider's keys.

    Args:
        hints: literals. A text without any of them has no key.
        pattern: a regular expression that begins with a literal. It should also match keys with stars instead of
            letters, as providers quote them.
    """

    hints: tuple[str, ...]
    pattern: str

    def may_be_in(self, text: str) -> bool:
        """Whether a text has a hint, so that it is worth a search."""
        return any(hint in text for hint in self.hints)


_lock = threading.Lock()
_forms: tuple[str, ...] = ()
_formats: tuple[SecretFormat, ...] = ()
_format_pattern = "(?!)"  # matches nothing


@cache
def _compile(pattern: str) -> re.Pattern[str]:
    # At the first use, because compiling all patterns takes a tenth of the time of `--help`.
    return re.compile(pattern)


def redact(text: str) -> str:
    """Replace secrets in a text: registered values in all their encodings, and strings in the format of a secret."""
    if len(text) > _MOST_KEPT:
        return replace_secrets(text, _mark)
    return _redact_again(text, _forms, _formats)


@lru_cache(maxsize=256)
def _redact_again(
    text: str,
    forms: tuple[str, ...],
    formats: tuple[SecretFormat, ...],
) -> str:
    """Redact a text that can come often, such as the parameters of a run's requests.

    Args:
        forms, formats: the secrets that are registered now.
    """
    return replace_secrets(text, _mark)


def _mark(secret: str) -> str:
    return MARK


def replace_secrets(text: str, name: Callable[[str], str]) -> str:
    """Replace each secret in a text by what a function returns for it; see `redact`."""
    for form in _forms:
        if form in text:
            text = text.replace(form, name(form))
    if any(known.may_be_in(text) for known in _formats):
        text = _compile(_format_pattern).sub(lambda match: name(match[0]), text)
    if any(sign in text for sign in _OMISSIONS):
        # The beginning of a registered value is replaced; other words stay.
        text = _compile(_QUOTED).sub(
            lambda match: (
                name(match[0])
                if any(form.startswith(match[1]) for form in _forms)
                else match[0]
            ),
            text,
        )
    for hints, pattern, replacement in _PATTERNS:
        if any(hint in text for hint in hints):
            text = _compile(pattern).sub(partial(_name_secret, replacement, name), text)
    return text


def _name_secret(
    replacement: str,
    name: Callable[[str], str],
    match: re.Match[str],
) -> str:
    """Return what takes the place of a match, whose secret is the part in the place of `MARK`."""
    before, _, after = replacement.partition(MARK)
    start = match.expand(before)
    end = match.expand(after)
    secret = match[0][len(start) : len(match[0]) - len(end)]
    return f"{start}{name(secret)}{end}"


def register_secret(value: str) -> None:
    """Make `redact` replace a value from now on. Values shorter than `_SHORTEST` are ignored."""
    global _forms
    value = value.strip()
    if len(value) < _SHORTEST or value in _forms:
        return
    # Its encodings in URLs, JSON, Python's `repr` and base64.
    forms = {value, quote(value, safe=""), quote_plus(value), repr(value)[1:-1]}
    for ascii_only in (True, False):
        forms.add(json.dumps(value, ensure_ascii=ascii_only)[1:-1])
    for before in range(3):
        for form in _base64(value.encode("utf-8", "surrogatepass"), before):
            forms.add(form)
    with _lock:
        # The longest form comes first, because replacing a part of a longer value would leave the rest of it.
        forms = {form for form in (*_forms, *forms) if len(form) >= _SHORTEST}
        _forms = tuple(sorted(forms, key=lambda form: (-len(form), form)))


def register_format(secret: SecretFormat) -> None:
    """Make `redact` replace keys of a format from now on."""
    global _formats, _format_pattern
    with _lock:
        if secret not in _formats:
            # One pattern for all formats finds the leftmost key first, whoever registered its format.
            _format_pattern = "|".join(known.pattern for known in (*_formats, secret))
            _formats = (*_formats, secret)


def register_environment(environment: Mapping[str, str] = os.environ) -> None:
    """Register the values of all variables whose name marks a secret."""
    for name, value in environment.items():
        if SECRET_NAME.search(name):
            register_secret(value)


def register_arguments(value: object, name: str = "", secret: bool = False) -> None:
    """Register the secrets in a client's arguments at any depth: keys, headers, parts of URLs; all if `secret`."""
    secret = secret or bool(SECRET_ARGUMENT.search(name))
    if isinstance(value, Mapping):
        headers = bool(_HEADERS.search(name))
        for key, item in value.items():
            register_arguments(
                item,
                str(key),
                secret or (headers and not _PLAIN_HEADER.match(str(key))),
            )
    elif isinstance(value, list | tuple):
        for item in value:
            register_arguments(item, name, secret)
    elif isinstance(value, str) and secret and not _SPECIAL_TOKEN.fullmatch(value):
        # The last word is registered, too, because servers quote the key of `Bearer KEY` without the first word.
        for part in {value, value.split()[-1]} if value.strip() else ():
            register_secret(part)
    elif isinstance(value, str) and "://" in value:
        _register_address(value)


def _register_address(address: str) -> None:
    try:
        parts = urlsplit(address)
    except ValueError:  # not a URL
        return
    if parts.password:
        register_secret(unquote(parts.password))
    for name, value in parse_qsl(parts.query):
        register_arguments(
            value, name, secret=name == "code"
        )  # Azure Functions pass their key as `code`


def register_credentials(credentials: Mapping[str, Any]) -> None:
    """Register the secrets in HELM's credentials: values with names such as `openaiApiKey`, all under `deployments`."""
    for name, value in credentials.items():
        register_arguments(
            value, secret=name == "deployments" or bool(SECRET_NAME.search(name))
        )


def _base64(value: bytes, before: int) -> set[str]:
    """Return the base64 characters, standard and URL-safe, that depend only on `value`.

    Base64 encodes groups of 3 bytes, so the encoding depends on the number of bytes `before` it (modulo 3).
    """
    encoded = base64.b64encode(b"\0" * before + value).decode()
    whole = encoded[math.ceil(8 * before / 6) : 8 * (before + len(value)) // 6]
    return {whole, whole.replace("+", "-").replace("/", "_")}


register_format(
    SecretFormat(("sk-ant-",), r"sk-ant-(?=[\w*-]{0,60}[\d*])[\w*-]{8,}")
)  # Anthropic
register_format(  # OpenAI
    SecretFormat(
        ("sk-",),
        r"sk-(?:proj|svcacct|admin|None)-(?=[\w*-]{0,60}[\d*])[\w*-]{8,}"
        r"|sk-(?=[A-Za-z]{0,60}[\d*])[A-Za-z0-9*]{16,}|(?<![A-Za-z])sk-(?=[\w*-]{0,60}[\d*])[\w*-]{24,}",
    )
)
register_format(
    SecretFormat(("sk-",), r"sk-(?:or|lf)-(?=[\w*-]{0,60}[\d*])[\w*-]{8,}")
)  # OpenRouter, Langfuse
