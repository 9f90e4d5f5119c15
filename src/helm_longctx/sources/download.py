"""Downloads that survive a bad network: bytes of a URL, taken up where a connection broke."""

from __future__ import annotations

import hashlib
import io
import logging
import re
import shutil
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from datetime import datetime, timezone
from email.utils import parsedate_to_datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from helm_longctx.errors import InputError
from helm_longctx.sources.root import USE_A_MIRROR

if TYPE_CHECKING:
    from requests import PreparedRequest, Response
    from tenacity import RetryCallState

ATTEMPTS = 8
"""How often in a row to try without getting a single new byte."""
WAIT, WAIT_MOST = 1.0, 60.0
"""Seconds before the second attempt, doubled each time, and the longest."""
RETRY_AFTER_MOST = 300.0
"""The longest wait, in seconds, that a server may ask for."""
TIMEOUTS = (30.0, 60.0)
"""Seconds for a connection, and between two pieces of an answer."""
_BLOCK = 1 << 16  # small: what of a block came before a connection was reset may be lost

NOT_THERE = "it is not there, or not for this login"
"""Why a server refuses, for errors."""

SPACE_MARGIN = 256 << 20
"""Bytes that stay free on the disk."""

Result = TypeVar("Result")

_log = logging.getLogger(__name__)


class ResumingStream(io.RawIOBase):
    """A file on a server, read once from its start to its end; wrap it in `io.BufferedReader`.

    Args:
        url: where it is; its content must not change while it is read.
        size: its size in bytes, if it is known.
        token: sent as a bearer token to the host of `url`, and not to hosts that it redirects to.
        progress: called with the number of every few bytes.

    Raises:
        InputError: on reading: the server's answers do not fit together or do not fit `size`.
        OSError: on reading: the server refuses, or the connection breaks too often.
    """

    def __init__(self, url: str, size: int | None = None, token: str | None = None):
        self.size = size
        self.position = 0
        self.digest = hashlib.sha256()
        self.progress: Callable[[int], object] = lambda count: None
        self._url, self._token = url, token
        self._response: Response | None = None

    def readable(self) -> bool:
        """It is."""
        return True

    def readinto(self, buffer: Any) -> int:
        """As every raw file; 0 at the end."""
        data = b""
        if self.position != self.size:
            # Every call counts its attempts anew: one that ends well has brought something.
            data = retry(self._attempt, len(buffer))
        buffer[: len(data)] = data
        self.position += len(data)
        self.digest.update(data)
        self.progress(len(data))
        return len(data)

    def close(self) -> None:
        """Let the connection go."""
        self._drop()
        super().close()

    def _attempt(self, count: int) -> bytes:
        try:
            response = self._response = self._response or self._open()
            data = _read_raw(response, count if self.size is None else min(count, self.size - self.position))
            if not data and self.size:
                raise ConnectionError(f"the connection ended at byte {self.position} of {self.size}")
        except BaseException:
            self._drop()
            raise
        return data

    def _drop(self) -> None:
        if self._response is not None:
            self._response.close()
        self._response = None

    def _open(self) -> Response:
        """An answer whose next byte is the one at our position."""
        import requests

        headers = {"Accept-Encoding": "identity"}
        if self.position:
            headers["Range"] = f"bytes={self.position}-"
        # As `auth`: a header would give way to what ~/.netrc has for the host.
        auth = _bearer(self._token) if self._token else None
        response = requests.get(self._url, headers=headers, auth=auth, stream=True, timeout=TIMEOUTS)
        try:
            self._check(response)
            if response.status_code == 200:
                _skip(response, self.position)
        except BaseException:
            response.close()
            raise
        return response

    def _check(self, response: Response) -> None:
        import requests

        status = response.status_code
        if status == 416 and self.position:
            raise InputError(f"the file has no byte {self.position}, but {self.size} bytes were announced")
        if status >= 400:
            raise requests.HTTPError(f"status {status}", response=response)
        if status == 200:
            self._check_size(response.headers.get("Content-Length"))
        elif status == 206 and self.position:
            self._check_range(response.headers.get("Content-Range", ""))
        else:
            raise InputError(f"the server answered {status} to a plain download; {USE_A_MIRROR}")

    def _check_size(self, length: str | None) -> None:
        found = int(length) if length and length.isdecimal() else None
        if None not in (found, self.size) and found != self.size:
            raise InputError(f"the file has {found} bytes, but {self.size} were announced; {USE_A_MIRROR}")
        self.size = found if self.size is None else self.size

    def _check_range(self, text: str) -> None:
        match = re.fullmatch(r"bytes (\d+)-\d+/(\d+|\*)", text.strip())
        totals = ("*", match[2] if match and self.size is None else str(self.size))
        if not match or int(match[1]) != self.position or match[2] not in totals:
            raise InputError(f"the server sent another part of the file than byte {self.position} on; {USE_A_MIRROR}")


def retry(function: Callable[..., Result], *arguments: object, **named: object) -> Result:
    """Call a function again, with growing waits, as long as its errors look temporary."""
    from tenacity import Retrying, retry_if_exception, stop_after_attempt

    calls = Retrying(
        stop=stop_after_attempt(ATTEMPTS),
        wait=_wait,
        retry=retry_if_exception(_is_temporary),
        before_sleep=_log_retry,
        reraise=True,
    )
    return calls(function, *arguments, **named)


def _read_raw(response: Response, count: int) -> bytes:
    """Bytes as they are on the wire: some servers call a .gz file an encoding of another."""
    import urllib3

    try:
        data: bytes = response.raw.read(count, decode_content=False)
    except urllib3.exceptions.HTTPError as error:
        raise ConnectionError(f"the connection broke ({type(error).__name__})") from error
    return data


def _skip(response: Response, count: int) -> None:
    while count:
        data = _read_raw(response, min(count, _BLOCK))
        if not data:
            raise ConnectionError("the connection ended before the place to go on")
        count -= len(data)


def _bearer(token: str) -> Callable[[PreparedRequest], PreparedRequest]:
    def add(request: PreparedRequest) -> PreparedRequest:
        request.headers["Authorization"] = f"Bearer {token}"
        return request

    return add


def _status(error: BaseException) -> int | None:
    status = getattr(getattr(error, "response", None), "status_code", None)
    return status if isinstance(status, int) else None


def _is_temporary(error: BaseException) -> bool:
    """Whether the same request may succeed in a moment."""
    import requests

    status = _status(error)
    if status is not None:
        return status in (408, 429) or status >= 500
    if isinstance(error, requests.exceptions.SSLError):
        return False
    return isinstance(error, (ConnectionError, TimeoutError, requests.ConnectionError, requests.Timeout))


def _wait(state: RetryCallState) -> float:
    error = state.outcome.exception() if state.outcome else None
    growing = min(WAIT * 2 ** (state.attempt_number - 1), WAIT_MOST)
    headers = getattr(getattr(error, "response", None), "headers", None) or {}
    return max(growing, min(_retry_after(headers), RETRY_AFTER_MOST))


def _retry_after(headers: Mapping[str, str]) -> float:
    """Seconds that a server asks to wait, given as such or as a date; 0 without a word."""
    text = headers.get("Retry-After", "")
    if re.fullmatch(r"\d+(\.\d+)?", text):
        return float(text)
    try:
        return (parsedate_to_datetime(text) - datetime.now(timezone.utc)).total_seconds()
    except (TypeError, ValueError):  # a date without a zone; no date
        return 0


def _log_retry(state: RetryCallState) -> None:
    error = state.outcome.exception() if state.outcome else None
    what = _status(error) if error and _status(error) else type(error).__name__
    seconds = state.next_action.sleep if state.next_action else 0
    _log.warning(
        "the download broke off (%s); attempt %d of %d in %.0f s", what, state.attempt_number + 1, ATTEMPTS, seconds
    )


@contextmanager
def explain_failures(
    what: str, folder: Path, command: str, refused: str = NOT_THERE, helps: str = USE_A_MIRROR
) -> Iterator[None]:
    """Turn any failure of a download into one line that says what to do.

    Args:
        refused: why the hub does not give it.
        helps: what helps then, besides a token.
    """
    try:
        yield
    except Exception as error:
        # Anything: which HTTP library's errors come through depends on huggingface_hub's version.
        raise InputError(f"{what}: {explain_failure(error, folder, refused, helps)}; then run: {command}") from error


def explain_failure(error: Exception, folder: Path, refused: str = NOT_THERE, helps: str = USE_A_MIRROR) -> str:
    """A failure and what to do, in one line. Of others' texts it has none: a URL in them can carry a token."""
    if isinstance(error, InputError):
        return str(error)
    status = getattr(getattr(error, "response", None), "status_code", None)
    if status in (401, 403, 404):
        return f"{refused} ({status}); set HF_TOKEN to a token with access, or {helps}"
    if status:
        return f"the server answered {status}; wait, or {USE_A_MIRROR}"
    if isinstance(error, OSError) and error.strerror and not isinstance(error, (ConnectionError, TimeoutError)):
        return f"{error.strerror}; check space and rights in {folder} and in HF_HUB_CACHE"
    return f"the download failed ({type(error).__name__}); check the network and HF_ENDPOINT, or {USE_A_MIRROR}"


def check_space(folder: Path, size: int = 0) -> None:
    """Refuse to go on if `size` bytes do not fit on the disk of `folder`.

    Raises:
        InputError: with what is needed and what is free.
    """
    needed, free = size + SPACE_MARGIN, shutil.disk_usage(folder).free
    if free < needed:
        raise InputError(
            f"{folder} needs {needed / 1e9:.2f} GB of free disk space and has {free / 1e9:.2f} GB; make room"
        )


def sha256_of(path: Path) -> str:
    """The SHA-256 of a file's content, in hexadecimal digits."""
    digest = hashlib.sha256()
    with path.open("rb") as file:
        while block := file.read(1 << 20):
            digest.update(block)
    return digest.hexdigest()
