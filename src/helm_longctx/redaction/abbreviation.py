"""Abbreviates long texts, so that logs and errors contain no whole prompt, and escapes characters that nobody sees."""

import hashlib
import logging
import sys
import traceback
import unicodedata
from dataclasses import fields
from typing import Any

from helm_longctx.errors import InputError, error_text
from helm_longctx.redaction.text import redact

_HEAD = 200
"""Number of characters at the start of a long text that remain."""

_LONGEST_SECRET = 8192
"""Length of the longest secret in characters. Access tokens of gateways have thousands."""

LOG_LIMIT = 2000
"""Number of characters up to which a log record or error message stays whole. Run specs do, and prompts do not."""

_TAIL = 1000
"""Number of characters at the end of a longer log record that remain. A traceback ends with its exception."""

_INVISIBLE = ("Cc", "Cf", "Cs")
"""Unicode's categories of control characters, of marks for the layout, and of lone surrogates."""

_NO_XML = "\ufffe\uffff"
"""Further characters that XML does not allow. The package that draws plots ends the process if it meets one."""


def digest(text: str) -> str:
    """Return the SHA-256 of a text in UTF-8, in hexadecimal digits. It also encodes lone surrogates, unlike UTF-8."""
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()


def abbreviate(text: str) -> str:
    """Return a long text's first characters, its length and its digest; a short text unchanged."""
    if len(text) <= _HEAD:
        return text
    # Redact before cutting: a later redaction would not recognize a secret that was cut in two.
    head = redact(text[: _HEAD + _LONGEST_SECRET])[:_HEAD]
    return f"{head}… [{len(text):,} characters, sha256 {digest(text)[:12]}]"


def describe_error(error: BaseException) -> str:
    """Return an exception's text in one line without secrets.

    The text is whole if it is ours, because its advice comes last, and if it says that a package is missing. Any other
    text can quote a prompt, so it is abbreviated.
    """
    text = redact(" ".join(error_text(error).split()))
    is_import = isinstance(error, ImportError) or isinstance(
        error.__cause__, ImportError
    )
    if isinstance(error, InputError) or is_import:
        return text
    return abbreviate(text)


def format_traceback(error: BaseException) -> str:
    """Format an exception with its traceback and causes, with long messages abbreviated."""
    return _abbreviate_messages("".join(traceback.format_exception(error)), error)


def _abbreviate_messages(text: str, error: BaseException | None) -> str:
    """Abbreviate the long messages of an error and of its causes where they occur in a text."""
    cause = error
    seen = set[int]()
    # Exceptions can be each other's context, so the chain of causes can be circular.
    while cause is not None and id(cause) not in seen:
        seen.add(id(cause))
        if len(message := str(cause)) > LOG_LIMIT:
            text = text.replace(message, abbreviate(message))
        cause = cause.__cause__ or cause.__context__
    return text


class _AbbreviatingFilter(logging.Filter):
    """Abbreviates long log records and long messages in their tracebacks."""

    def filter(self, record: logging.LogRecord) -> bool:
        """Abbreviate the record, and accept it."""
        message = record.getMessage()
        if len(message) > LOG_LIMIT:
            # HELM also logs tracebacks as text while it handles an exception, so the messages can stand in the text.
            message = _abbreviate_messages(message, sys.exc_info()[1])
            is_long = len(message) > LOG_LIMIT
            if is_long:
                record.msg = f"{abbreviate(message)} … {message[-_TAIL:]}"
            else:
                record.msg = message
            record.args = ()
        # Formatters print `exc_text` if it is set, so the long message of the exception is never formatted.
        if record.exc_info and record.exc_info[1] and not record.exc_text:
            record.exc_text = format_traceback(record.exc_info[1]).rstrip()
        return True


def add_log_filter() -> None:
    """Abbreviate the long records of HELM's log. Idempotent."""
    logger = logging.getLogger("helm")
    if not any(isinstance(present, _AbbreviatingFilter) for present in logger.filters):
        logger.addFilter(_AbbreviatingFilter())


def abbreviate_request(request: Any) -> str:
    """Return the `repr` of a HELM request with its long values abbreviated."""
    values = {}
    for field in fields(request):
        values[field.name] = getattr(request, field.name)
    texts = {}
    for n, v in values.items():
        texts[n] = repr(abbreviate(v)) if isinstance(v, str) else abbreviate(repr(v))
    return f"Request({', '.join(f'{name}={text}' for name, text in texts.items())})"


def is_invisible(character: str) -> bool:
    """Whether a character is a control character, a mark for the layout, or not allowed in XML."""
    return unicodedata.category(character) in _INVISIBLE or character in _NO_XML


def escape_invisible(text: str) -> str:
    """Return a text for a terminal: invisible characters except line breaks are escapes, such as `\\x1b`."""
    shown = []
    for character in text:
        if is_invisible(character) and character != "\n":
            shown.append(character.encode("unicode_escape").decode())
        else:
            shown.append(character)
    return "".join(shown)
