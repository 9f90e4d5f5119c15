"""Keys, tokens and passwords leave no trace in text: the exact ones in use, and what looks like one.

There is no kept-up library of such patterns for use at run time (scanners of repositories guess by entropy, which prose
trips), so the common providers' forms stand here in one table.
"""

from __future__ import annotations

import base64
import json
import math
import os
import re
import threading
from collections.abc import Mapping
from typing import Any
from urllib.parse import parse_qsl, quote, quote_plus, unquote, urlsplit

MARK = "[redacted]"

SHORTEST = 8
"""Characters of a value that is replaced wherever it stands: shorter ones (`EMPTY`) are found in ordinary words."""

SECRET_NAME = re.compile(r"(key|token|secret|password|passwd)$", re.IGNORECASE)
"""Names of environment variables and credentials whose values are secrets."""

_SECRET_ARGUMENT = re.compile(
    r"(keys?|tokens?|secrets?|passw(or)?d|passphrase|credentials?|auth|authorization|cookies?|sig(nature)?)$", re.I
)
"""Names of arguments of clients, and of parameters in addresses, whose values are secrets."""

_HEADERS = re.compile(r"headers?$", re.I)
"""Names of arguments that hold HTTP headers: gateways invent names, so that every value counts as a secret."""

_PLAIN_HEADER = re.compile(
    r"(accept(-.*)?|content-type|user-agent|http-referer|referer|x-title|.*-(beta|version))$", re.I
)
"""Headers whose values are no secrets."""

_SPECIAL_TOKEN = re.compile(r"<[^<>]*>")
"""`<|endoftext|>` is the value of an argument whose name ends in `token`, and no secret."""

_NAMED = (
    r"(?i:(?:api|access|account|private|subscription)[-_ ]?key|client[-_]?secret|passw(?:or)?d|id[-_]?token"
    r"|(?:access|auth|bearer|refresh|session|security|api)[-_]?token)"
)
"""What is followed by a secret where `:` or `=` follows."""

_IN_QUOTES = r"\\{0,3}[\"']?"
"""A quote, which is escaped in JSON within JSON."""

_IS = rf"(?: provided)?{_IN_QUOTES}\s{{0,3}}[:=]\s{{0,3}}{_IN_QUOTES}"

_VALUE = r"""(?!\[redacted\])[^\s"'&,;}\\]{8,}"""

_WITH_DIGIT = r"(?=[\w.*~+/=%-]{0,200}\d)"
"""What stands behind a word that is also said of other things, and is no word itself."""

# Of each: literals without which it cannot match (they are found fast in long text), the pattern, its replacement.
# Patterns begin with literals and have no long part that more must follow, so that their time grows with the text only.
_PATTERNS = [
    (hints, re.compile(pattern), replacement)
    for hints, pattern, replacement in [
        # OpenAI, Anthropic, OpenRouter, Langfuse; also as providers quote them, with stars.
        (
            ["sk-"],
            r"sk-(?:proj|ant|svcacct|admin|or|lf|None)-(?=[\w*-]{0,60}[\d*])[\w*-]{8,}"
            r"|sk-(?=[A-Za-z]{0,60}[\d*])[A-Za-z0-9*]{16,}|(?<![A-Za-z])sk-(?=[\w*-]{0,60}[\d*])[\w*-]{24,}",
            MARK,
        ),
        (["hf_"], r"hf_[A-Za-z0-9]{20,}", MARK),  # Hugging Face
        (["AIza", "ya29.", "AQ."], r"AIza[\w-]{30,}|ya29\.[\w-]{20,}|AQ\.[\w-]{30,}", MARK),  # Google
        (["AKIA", "ASIA", "ABSK"], r"(?:AKIA|ASIA)[A-Z0-9]{16}|ABSK[A-Za-z0-9+/=]{40,}", MARK),  # Amazon
        (["nvapi-", "xai-"], r"(?:nvapi|xai)-[\w-]{20,}", MARK),
        (["fw_", "dapi"], r"fw_(?=[A-Za-z]{0,99}\d)[A-Za-z0-9]{20,}|dapi[0-9a-f]{32}", MARK),  # Fireworks, Databricks
        (["gsk_", "pplx-", "tgp_v1_", "r8_"], r"(?:gsk_|pplx-|tgp_v1_|r8_)[A-Za-z0-9-]{20,}", MARK),
        (["gh", "github_pat_", "glpat-"], r"gh[oprsu]_[A-Za-z0-9]{36,}|github_pat_\w{22,}|glpat-[\w-]{20,}", MARK),
        (["xox"], r"xox[abeoprs]-(?=[A-Za-z-]{0,99}\d)[\w-]{10,}", MARK),  # Slack
        (["eyJ"], r"eyJ[\w-]{8,400}\.[\w-]{8,}(?:\.[\w-]*)?", MARK),  # a JSON web token
        (["PRIVATE KEY-"], r"-----BEGIN [A-Z ]{0,20}PRIVATE KEY-----(?:[^-]*-----END [A-Z ]*PRIVATE KEY-----)?", MARK),
        (["://"], r"://[^\s/:@]{0,200}:[^\s/@]{1,200}@", f"://{MARK}@"),  # user and password in an address
        (
            ["earer ", "EARER "],
            r"(Bearer|bearer|BEARER) +(?=[A-Za-z._~+/=-]{0,200}\d)[\w.~+/=-]{8,}",
            rf"\1 {MARK}",
        ),
        (["asic ", "ASIC "], r"(Basic|basic|BASIC) +(?=[A-Za-z+/]{0,200}[\d=])[A-Za-z0-9+/=]{12,}", rf"\1 {MARK}"),
        # A key that a provider quotes with most of it starred out: its ends are its owner's too.
        (["****"], r"[\w-]{2,40}\*{4,}[\w-]{2,40}", MARK),
        (
            ["uthorization", "UTHORIZATION"],
            rf"((?i:authorization){_IS}(?:(?i:bearer|basic) +|(?:\w{{1,20}} +)?{_WITH_DIGIT})){_VALUE}",
            rf"\1{MARK}",
        ),
        (["secret", "token"], rf"([\"'](?:secret|token){_IS}){_WITH_DIGIT}{_VALUE}", rf"\1{MARK}"),
        (["?", "&"], rf"([?&](?:key|token|sig|signature|code|[\w-]{{1,30}}-key)=){_WITH_DIGIT}{_VALUE}", rf"\1{MARK}"),
        ([":", "="], rf"({_NAMED}{_IS}){_VALUE}", rf"\1{MARK}"),
    ]
]

_lock = threading.Lock()
_forms: tuple[str, ...] = ()


def redact(text: str) -> str:
    """`text` without secrets: values in use, however they are written, and what has the form of one."""
    for form in _forms:
        if form in text:
            text = text.replace(form, MARK)
    for hints, pattern, replacement in _PATTERNS:
        if any(hint in text for hint in hints):
            text = pattern.sub(replacement, text)
    return text


def register_secret(value: str) -> None:
    """From now on, `value` is replaced wherever it stands; unless it is shorter than `SHORTEST`."""
    global _forms
    value = value.strip()
    if len(value) < SHORTEST or value in _forms:
        return
    with _lock:
        # The longest first, so that no part of one hides another.
        _forms = tuple(sorted({*_forms, *_encodings(value)}, key=lambda form: (-len(form), form)))


def register_environment(environment: Mapping[str, str] = os.environ) -> None:
    """Register every variable whose name says that it is a secret."""
    for name, value in environment.items():
        if SECRET_NAME.search(name):
            register_secret(value)


def register_arguments(value: object, name: str = "", secret: bool = False) -> None:
    """Register what the arguments of a client hold, however deep: keys, headers, and passwords and keys in addresses.

    Args:
        value: the arguments, or one of them.
        name: of the argument.
        secret: whether all texts within are secrets, whatever their names.
    """
    secret = secret or bool(_SECRET_ARGUMENT.search(name))
    if isinstance(value, Mapping):
        headers = bool(_HEADERS.search(name))
        for key, item in value.items():
            register_arguments(item, str(key), secret or (headers and not _PLAIN_HEADER.match(str(key))))
    elif isinstance(value, list | tuple):
        for item in value:
            register_arguments(item, name, secret)
    elif isinstance(value, str) and secret and not _SPECIAL_TOKEN.fullmatch(value):
        for part in {value, value.split()[-1]} if value.strip() else ():  # `Bearer …`: servers quote the key alone
            register_secret(part)
    elif isinstance(value, str) and "://" in value:
        _register_address(value)


def _register_address(address: str) -> None:
    try:
        parts = urlsplit(address)
    except ValueError:  # no address
        return
    if parts.password:
        register_secret(unquote(parts.password))
    for name, value in parse_qsl(parts.query):
        register_arguments(value, name, secret=name == "code")  # as Azure's functions call their key


def register_credentials(credentials: Mapping[str, Any], all_secret: bool = False) -> None:
    """Register what HELM's credentials hold: names such as `openaiApiKey`, and all under `deployments`."""
    for name, value in credentials.items():
        secret = all_secret or bool(SECRET_NAME.search(name))
        if isinstance(value, Mapping):
            register_credentials(value, secret or name == "deployments")
        else:
            register_arguments(value, secret=secret)


def _encodings(value: str) -> set[str]:
    """How a value is written in addresses, JSON, Python's errors and headers."""
    forms = {value, quote(value, safe=""), quote_plus(value), repr(value)[1:-1]}
    forms |= {json.dumps(value, ensure_ascii=ascii_only)[1:-1] for ascii_only in (True, False)}
    forms |= {form for before in range(3) for form in _base64(value.encode("utf-8", "surrogatepass"), before)}
    return {form for form in forms if len(form) >= SHORTEST}


def _base64(value: bytes, before: int) -> set[str]:
    """The base64 characters that depend on `value` alone where it stands behind `before` bytes, modulo 3."""
    encoded = base64.b64encode(b"\0" * before + value).decode()
    whole = encoded[math.ceil(8 * before / 6) : 8 * (before + len(value)) // 6]
    return {whole, whole.replace("+", "-").replace("/", "_")}
