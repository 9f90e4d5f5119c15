"""Downloads files over an unreliable network: retries, resumes after a broken connection, and explains failures."""

from __future__ import annotations

import hashlib
import io
import json
import logging
import os
import queue
import re
import shutil
import tempfile
import threading
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from contextvars import copy_context
from dataclasses import dataclass, field
from datetime import datetime, timezone
from email.utils import parsedate_to_datetime
from functools import partial
from pathlib import Path
from typing import (
    TYPE_CHECKING,
    Any,
    BinaryIO,
    ClassVar,
    Literal,
    NamedTuple,
    TypeVar,
    cast,
)

import orjson

from helm_longctx.data.root import USE_A_MIRROR, DataRoot
from helm_longctx.errors import InputError, shorten

if TYPE_CHECKING:
    from requests import PreparedRequest, Response
    from tenacity import RetryCallState

_ATTEMPTS = 8
"""Number of attempts in a row without a new byte after which a download fails."""
WAIT = 1.0
_WAIT_MOST = 60.0
"""Seconds to wait before the second attempt, doubled with each further attempt, and the longest wait."""
_RETRY_AFTER_MOST = 300.0
"""Longest wait in seconds that a server's `Retry-After` header may ask for."""
TIMEOUTS = (30.0, 60.0)
"""Seconds to wait for a connection, and for the next bytes of a response."""
_BLOCK = 1 << 16
"""Number of bytes that are read at a time. It is small, because a connection reset loses a partial block."""

_NO_ACCESS = "it does not exist, or your login has no access to it"
"""Default reason in errors when a server refuses a request."""

SOURCE = ".source.json"
"""Suffix of the file next to a downloaded one that records where it came from."""

SPACE_MARGIN = 256 << 20
"""Bytes of disk space that always stay free."""

_BLOCKS_PER_CHECK = 64
"""Blocks of 1 MiB of a download without an announced size after which the free disk space is checked again."""

ASK_SECONDS = 120.0
"""Seconds that a description may take. The limits of libraries hold for the time between two bytes only."""
_MOST_DESCRIPTION = 64 << 20
"""Largest size in bytes of a description. A list of 100,000 files with their digests has about 20 MB."""

_Result = TypeVar("_Result")

_log = logging.getLogger(__name__)


class ResumingStream(io.RawIOBase):
    """Reads a file on a server once, from start to end. Wrap it in `io.BufferedReader`.

    Args:
        url: address of the file. Its content must not change while it is read.
        size: size in bytes, if it is known.
        token: bearer token for the host of `url`. Other hosts do not receive it after redirects.

    Attributes:
        progress: function that is called with the number of bytes of each read.
        digest: SHA-256 of the bytes read so far.

    Raises:
        InputError: while reading, if the server's responses contradict each other or `size`.
        OSError: while reading, if the server refuses the request or the connection breaks too often.
    """

    def __init__(
        self,
        url: str,
        size: int | None = None,
        token: str | None = None,
    ):
        self.size = size
        self.position = 0
        self.digest = hashlib.sha256()
        self.progress: Callable[[int], object] = lambda count: None
        self._url = url
        self._token = token
        self._response: Response | None = None

    def readable(self) -> bool:
        """Return True: the stream can always be read."""
        return True

    def readinto(self, buffer: Any) -> int:
        """Fill `buffer` and return the number of bytes; 0 at the end of the file."""
        data = b""
        # Without this check the end of the file would look like a broken connection.
        if self.position != self.size:
            # Each call has its own count of attempts, because each successful call brings new bytes.
            data = retry(self._attempt, len(buffer))
        buffer[: len(data)] = data
        self.position += len(data)
        self.digest.update(data)
        self.progress(len(data))
        return len(data)

    def close(self) -> None:
        """Close the connection."""
        self._drop()
        super().close()

    def _attempt(self, count: int) -> bytes:
        try:
            response = self._response = self._response or self._open()
            data = _read_raw(
                response,
                count if self.size is None else min(count, self.size - self.position),
            )
            # If no size was announced, the end of the response is the end of the file.
            if not data and self.size:
                raise ConnectionError(
                    f"the connection ended at byte {self.position} of {self.size}"
                )
        # BaseException is caught, so that Ctrl-C closes the connection, too. No connection can be used after an error.
        except BaseException:
            self._drop()
            raise
        return data

    def _drop(self) -> None:
        if self._response is not None:
            self._response.close()
        self._response = None

    def _open(self) -> Response:
        """Request the file, and return a response whose next byte is the one at `position`."""
        import requests
        from urllib3.exceptions import NewConnectionError

        # Positions are those in the stored file. A server that compresses the file would count other bytes.
        headers = {"Accept-Encoding": "identity"}
        if self.position:
            headers["Range"] = f"bytes={self.position}-"

        auth = _Bearer(self._token) if self._token else None
        try:
            response = requests.get(
                self._url,
                headers=headers,
                auth=auth,
                stream=True,
                timeout=TIMEOUTS,
            )
        except requests.ConnectionError as error:
            # A server that sent bytes before may be back soon. Without a network, nobody should wait for all attempts.
            cause = getattr(error.args[0] if error.args else None, "reason", None)
            if self.position or not isinstance(cause, NewConnectionError):
                raise
            raise InputError(
                f"the server cannot be reached; check the network, or {USE_A_MIRROR}"
            ) from error
        try:
            self._check(response)
            # With 200 the server ignored the Range header and sends the whole file.
            left = self.position if response.status_code == 200 else 0
            while left:
                data = _read_raw(response, min(left, _BLOCK))
                if not data:
                    raise ConnectionError(
                        "the connection ended before the position to resume at"
                    )
                left -= len(data)
        except BaseException:
            response.close()
            raise
        return response

    def _check(self, response: Response) -> None:
        import requests

        status = response.status_code
        # Status 416 means that the server has no byte at the position in the Range header.
        if status == 416 and self.position:
            raise InputError(
                f"the file ends before byte {self.position}, but {self.size} bytes were announced"
            )
        if status >= 400:
            raise requests.HTTPError(f"status {status}", response=response)
        if status == 200:
            length = response.headers.get("Content-Length")
            announced = int(length) if length and length.isdecimal() else None
            if None not in (announced, self.size) and announced != self.size:
                raise InputError(
                    f"the file has {announced} bytes, but {self.size} were announced;"
                    f" {USE_A_MIRROR}"
                )
            self.size = announced if self.size is None else self.size
        # Status 206 is only valid after a Range header, and the first request has none.
        elif status == 206 and self.position:
            match = re.fullmatch(
                r"bytes (\d+)-\d+/(\d+|\*)",
                response.headers.get("Content-Range", "").strip(),
            )
            # Servers may send `*` for a total that they do not know (RFC 9110, section 14.4).
            totals = ("*", match[2] if match and self.size is None else str(self.size))
            if not match or int(match[1]) != self.position or match[2] not in totals:
                raise InputError(
                    "the server sent a part of the file that does not begin at byte"
                    f" {self.position}; {USE_A_MIRROR}"
                )
        else:
            raise InputError(
                f"the server answered with status {status} instead of the file; {USE_A_MIRROR}"
            )


def run_within(seconds: float, function: Callable[[], _Result]) -> _Result:
    """Return what a function returns. It runs in a thread, which is left alone after this time.

    Raises:
        InputError: the function took longer. Every error of the function is raised as it is.
    """
    outcomes: queue.SimpleQueue[tuple[_Result | None, BaseException | None]]
    outcomes = queue.SimpleQueue()

    def work() -> None:
        try:
            outcomes.put((function(), None))
        except BaseException as error:
            outcomes.put((None, error))

    context = copy_context()
    threading.Thread(
        target=context.run,
        args=(work,),
        daemon=True,
    ).start()
    try:
        result, error = outcomes.get(timeout=seconds)
    except queue.Empty:
        raise InputError(
            f"the server needed more than {seconds:.0f} seconds; try again, or {USE_A_MIRROR}"
        ) from None
    if error is not None:
        raise error
    return cast(_Result, result)


class Description(NamedTuple):
    """What a server says of a repository or a file: the content of its JSON, and the address of the next page."""

    content: Any
    next_url: str


def fetch_description(url: str, token: str | None = None) -> Description:
    """Ask a server for JSON that describes something. Its size and its time are limited.

    Args:
        token: bearer token for the host of `url`. Other hosts do not receive it after redirects.

    Raises:
        InputError: the response is too large, takes too long, or is no JSON.
        OSError: the server refuses the request, or cannot be reached.
    """
    return run_within(ASK_SECONDS, partial(_read_description, url, token))


def _read_description(url: str, token: str | None) -> Description:
    import requests

    auth = _Bearer(token) if token else None
    data = bytearray()
    with requests.get(
        url,
        auth=auth,
        stream=True,
        timeout=TIMEOUTS,
    ) as response:
        if response.status_code >= 400:
            raise requests.HTTPError(
                f"status {response.status_code}", response=response
            )
        for block in response.iter_content(_BLOCK):
            data += block
            if len(data) > _MOST_DESCRIPTION:
                raise InputError(
                    f"the server's description is larger than {_MOST_DESCRIPTION >> 20}"
                    f" MiB; {USE_A_MIRROR}"
                )
        next_url = response.links.get("next", {}).get("url", "")
    try:
        return Description(orjson.loads(data), next_url)
    except orjson.JSONDecodeError:
        kind = response.headers.get("Content-Type") or "nothing"
        raise InputError(
            f"the server answered with {shorten(kind)} that is no JSON; check the"
            f" network and HF_ENDPOINT, or {USE_A_MIRROR}"
        ) from None


class _Bearer:
    """Adds a token to a request. requests would replace a header by the host's entry in ~/.netrc."""

    def __init__(self, token: str):
        self._token = token

    def __call__(self, request: PreparedRequest) -> PreparedRequest:
        request.headers["Authorization"] = f"Bearer {self._token}"
        return request


def copy_stream(stream: ResumingStream, out: BinaryIO, folder: Path) -> None:
    """Copy a download of unknown size into a file in `folder`.

    Raises:
        InputError: the disk is nearly full, as when a server never stops sending.
    """
    source = io.BufferedReader(stream)
    count = 0
    while block := source.read(1 << 20):
        out.write(block)
        count += 1
        if count % _BLOCKS_PER_CHECK == 0:
            check_space(folder)


def retry(
    function: Callable[..., _Result],
    *arguments: object,
    **named: object,
) -> _Result:
    """Call a function, and call it again after growing waits as long as its errors look temporary."""
    from tenacity import (
        Retrying,
        retry_if_exception,
        stop_after_attempt,
        wait_exponential,
    )

    growing = wait_exponential(WAIT, _WAIT_MOST)

    def wait(state: RetryCallState) -> float:
        error = state.outcome and state.outcome.exception()
        return max(
            growing(state),
            min((error and retry_after(error)) or 0.0, _RETRY_AFTER_MOST),
        )

    def log(state: RetryCallState) -> None:
        error = state.outcome and state.outcome.exception()
        what = (error and status_of(error)) or type(error).__name__
        seconds = state.next_action.sleep if state.next_action else 0
        about = f"attempt {state.attempt_number + 1} of {_ATTEMPTS} in {seconds:.0f} s"
        _log.warning("the download broke off (%s); %s", what, about)

    again = retry_if_exception(_is_temporary)
    most = stop_after_attempt(_ATTEMPTS)
    return Retrying(
        stop=most,
        wait=wait,
        retry=again,
        before_sleep=log,
        reraise=True,
    )(function, *arguments, **named)


def _read_raw(response: Response, count: int) -> bytes:
    """Read bytes without decoding: some servers send a .gz file with the header `Content-Encoding: gzip`."""
    import urllib3

    try:
        data: bytes = response.raw.read(count, decode_content=False)
    except urllib3.exceptions.HTTPError as error:
        raise ConnectionError(
            f"the connection broke ({type(error).__name__})"
        ) from error
    return data


def status_of(error: BaseException) -> int | None:
    """Return the HTTP status of the response that an error has, or None."""
    status = getattr(getattr(error, "response", None), "status_code", None)
    return status if isinstance(status, int) else None


def _is_offline(error: BaseException) -> bool:
    """Whether huggingface_hub refuses all requests, because HF_HUB_OFFLINE is set."""
    # The class is derived from ConnectionError. Its module is slow to import.
    return type(error).__name__ == "OfflineModeIsEnabled"


def _is_temporary(error: BaseException) -> bool:
    """Return whether the same request may succeed if it is sent again."""
    import requests

    status = status_of(error)
    if status is not None:
        return status in (408, 429) or status >= 500
    # SSLError is derived from ConnectionError, but an invalid certificate is not temporary.
    if isinstance(error, requests.exceptions.SSLError) or _is_offline(error):
        return False
    return isinstance(
        error,
        (ConnectionError, TimeoutError, requests.ConnectionError, requests.Timeout),
    )


def retry_after(error: BaseException) -> float | None:
    """Return the seconds after which a server allows the next request. Returns None if it does not say.

    The header has a number of seconds or a date (RFC 9110, section 10.2.3); OpenAI also sends one in milliseconds.
    """
    headers = getattr(getattr(error, "response", None), "headers", None)
    if not isinstance(headers, Mapping):
        return None
    # The header in milliseconds is read first, because it is more exact.
    for name, unit in (("retry-after-ms", 0.001), ("retry-after", 1.0)):
        try:
            return max(0.0, float(headers.get(name, "")) * unit)
        except ValueError:
            continue
    try:
        date = parsedate_to_datetime(headers.get("retry-after", ""))
    except ValueError:
        return None
    # A date in the zone `-0000` is in UTC, too, but comes without a zone.
    date = date if date.tzinfo else date.replace(tzinfo=timezone.utc)
    return max(0.0, (date - datetime.now(timezone.utc)).total_seconds())


@dataclass(frozen=True)
class Pin:
    """What of a repository is read.

    Args:
        repo: `owner/name`.
        kind: a data set or a model of the hub, or a repository on GitHub.
        commit: the commit. An empty one stands for the newest.
        files: the names of the files, or the starts of their names.
        digests: the digests of files that are compared with the downloaded ones, by name; empty texts if they are not
            known.
    """

    repo: str
    kind: Literal["dataset", "model", "github"]
    commit: str
    files: tuple[str, ...]
    digests: Mapping[str, str] = field(default_factory=dict)


class Source(ABC):
    """A source whose files are downloaded together, by themselves. Its subclasses are dataclasses.

    Attributes:
        title: its name in the log and in errors, as a format of the source, such as `{0.name} of bucket {0.bucket}`.
        refusal: reason that errors name if the server refuses access.
        is_published: whether the publisher serves the files. If not, only mirrors can have them.
        log_level: the level at which the log says that it is fetched.
    """

    title: ClassVar[str] = ""
    refusal: ClassVar[str] = _NO_ACCESS
    is_published: ClassVar[bool] = True
    log_level: ClassVar[int] = logging.WARNING

    @property
    @abstractmethod
    def paths(self) -> list[str]:
        """Its files under the data root."""

    @property
    def target_folder(self) -> str:
        """The folder that receives the files, under the data root."""
        return str(Path(self.paths[0]).parent)

    @property
    def label(self) -> str:
        """Its name in the log and in errors."""
        return self.title.format(self)

    def is_present(self, root: DataRoot) -> bool:
        """Whether the files need not be fetched."""
        return all(map(root.has, self.paths))

    @property
    def remedy(self) -> str:
        """What to do if the server refuses access, in addition to setting a token."""
        return USE_A_MIRROR

    @abstractmethod
    def fetch(self, folder: Path) -> None:
        """Download the files into `folder`, `target_folder` under the data root. It need not exist."""

    def first_rows(self) -> Mapping[str, bytes]:
        """Return for each file under the data root its content with the first row alone, without downloading the file.

        Returns:
            nothing for a source that cannot be read in part, such as a file that is no JSON.
        """
        return {}

    @property
    def pin(self) -> Pin | None:
        """The part of a repository that is read. None if the source is in no repository."""
        return None

    @property
    def stored_sha256(self) -> Mapping[str, str]:
        """The known digests of files under the data root, by path."""
        return {}

    def find_differences(self) -> list[str]:
        """Compare what the server has with what is known of it, without downloading large files: a sentence for each.

        An error of the network or of the server is raised as it is.
        """
        return []

    def ensure(self, root: DataRoot, command: str) -> None:
        """Download the files if one of them is not under the data root.

        Raises:
            InputError: files are missing from a mirror, the download fails, or its content is not as expected.
        """
        if not root.find_absent(self.paths, command):
            return
        folder = root / self.target_folder
        _log.log(self.log_level, "fetching %s into %s", self.label, folder)
        try:
            self.fetch(folder)
        except Exception as error:
            # huggingface_hub raises the errors of different HTTP libraries, depending on its version.
            reason = explain_failure(error, folder, self.refusal, self.remedy)
            raise InputError(f"{self.label}: {reason}; then run: {command}") from error


def explain_failure(
    error: Exception,
    folder: Path,
    refusal: str = _NO_ACCESS,
    remedy: str = USE_A_MIRROR,
) -> str:
    """Explain an error and what to do about it, in one line.

    The messages of other libraries are omitted, because they quote URLs that can contain a token.
    """
    if isinstance(error, InputError):
        return str(error)
    status = status_of(error)
    if status in (401, 403, 404):
        return f"{refusal} ({status}); set HF_TOKEN to a token with access, or {remedy}"
    if status:
        return f"the server answered with status {status}; wait, or {USE_A_MIRROR}"
    # This branch is for errors of the disk. Errors of the network are also OSErrors, and some have `strerror`, too.
    is_network_error = isinstance(error, (ConnectionError, TimeoutError))
    if isinstance(error, OSError) and error.strerror and not is_network_error:
        return f"{error.strerror}; check free space and permissions in {folder} and in HF_HUB_CACHE"
    if _is_offline(error):
        return f"HF_HUB_OFFLINE is set, so nothing is downloaded; unset it, or {USE_A_MIRROR}"
    what = type(error).__name__
    return f"the download failed ({what}); check the network and HF_ENDPOINT, or {USE_A_MIRROR}"


def check_space(folder: Path, size: int = 0) -> None:
    """Check that the disk of `folder` has room for `size` bytes and some free space.

    Raises:
        InputError: there is not enough room. The message gives the needed and the free space.
    """
    needed = size + SPACE_MARGIN
    free = shutil.disk_usage(folder).free
    if free < needed:
        raise InputError(
            f"{folder} needs {needed / 1e9:.2f} GB of free disk space and has"
            f" {free / 1e9:.2f} GB; free some space"
        )


@contextmanager
def place_file(target: Path) -> Iterator[tuple[Path, dict[str, object]]]:
    """Yield a temporary file to write and a record of its source to fill. Then move both into the target's folder.

    The move is atomic, so no reader and no other process sees a partial file.
    """
    target.parent.mkdir(parents=True, exist_ok=True)
    # The temporary file is in the target's folder, because a move is only atomic within a disk.
    with tempfile.TemporaryDirectory(prefix=".fetch-", dir=target.parent) as name:
        data = Path(name) / "data"
        record = Path(name) / "source"
        source: dict[str, object] = {}
        yield data, source
        # The record comes first, because for readers the download is complete when the file exists.
        if source:
            source["stored"] = {target.name: describe_stored(data)}
            warn_if_changed(target.with_name(target.name + SOURCE), source, target.name)
            record.write_bytes(orjson.dumps(source, option=orjson.OPT_INDENT_2))
            os.replace(record, target.with_name(target.name + SOURCE))
        os.replace(data, target)


def describe_stored(path: Path) -> dict[str, object]:
    """Return the size and the SHA-256 of a file under a data root, for the record next to it."""
    return {"size": path.stat().st_size, "sha256": sha256_of(path)}


def warn_if_changed(old: Path, source: Mapping[str, object], name: str) -> None:
    """Warn if the record of an earlier fetch has other digests of the stored files than the record of this one."""
    try:
        stored = json.loads(old.read_bytes())["stored"]
    except (OSError, ValueError, LookupError, TypeError):
        return  # nothing was fetched before, or the record is damaged
    if stored != source["stored"]:
        _log.warning(
            "%s: the file changed since it was fetched before; scores do not compare"
            " with scores on the old one",
            name,
        )


class SingleFile(Source):
    """A source of one file. Its subclasses have the field `path`, the file's path under the data root."""

    path: str

    @property
    def paths(self) -> list[str]:
        """Its file under the data root."""
        return [self.path]

    def fetch(self, folder: Path) -> None:
        """Download the file, and write its origin into a record next to it, if there is one."""
        with place_file(folder / Path(self.path).name) as (part, record):
            record |= self.write(part)

    def write(self, part: Path) -> Mapping[str, object]:
        """Download the file to `part`, in a temporary folder, and return the record of its origin."""
        raise NotImplementedError


@dataclass(frozen=True)
class UnpublishedFile(SingleFile):
    """A file that its publisher describes and does not serve, so that only mirrors can have it.

    Args:
        publisher: the page that does not have the file.
    """

    path: str
    publisher: str

    title = "{0.path}"
    is_published = False
    log_level = logging.DEBUG

    def write(self, part: Path) -> Mapping[str, object]:
        """Raise an `InputError`, because there is nothing to download."""
        raise InputError(
            f"{self.publisher} does not have this file; put a copy into a mirror folder"
            " and set HELM_LONGCTX_DATA"
        )


def sha256_of(path: Path) -> str:
    """Return the SHA-256 of a file's content in hexadecimal digits."""
    digest = hashlib.sha256()
    with path.open("rb") as file:
        while block := file.read(1 << 20):
            digest.update(block)
    return digest.hexdigest()
