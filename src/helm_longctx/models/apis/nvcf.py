"""Calls functions in NVIDIA's cloud (NVCF). A function has one address for all requests, and may answer later.

While a function works, the cloud answers 202 with the request's id in `NVCF-REQID`. The answer is then fetched from
`…/pexec/status/ID`, which holds each request for up to `NVCF-POLL-SECONDS`, and answers 202 again without an answer.
"""

import re
import time
from collections.abc import Generator
from types import ModuleType
from typing import Any
from urllib.parse import quote

from helm_longctx.errors import bad_argument

POLL_SECONDS = "60"
"""Seconds that the cloud is asked to hold a request before it answers with status 202."""

PAUSE = 0.2
"""Seconds between two polls, if the cloud does not hold requests."""

_FUNCTION = re.compile(r"(?P<root>.*/pexec)(?P<function>/functions/[^/]+(/versions/[^/]+)?)")
_FORM = "https://api.nvcf.nvidia.com/v2/nvcf/pexec/functions/ID"


class FunctionCalls:
    """Sends the requests of an HTTP client to a function, and waits for the answers.

    The HTTP libraries call this an authentication flow: it may change a request, and send more before the caller gets a
    response. Their clients need an object whose class also derives from the library's `Auth` (`http.derive`).

    Raises:
        InputError: `base_url` is not the address of a function.
    """

    def __init__(self, base_url: str, http: ModuleType):
        found = _FUNCTION.match(base_url)
        if found is None:
            raise bad_argument(
                "client_spec.args", "base_url", base_url, f"a function's address with nvcf, {_FORM}"
            )
        self._http: Any = http
        self._function = self._http.URL(found[0])
        self._status = f"{found['root']}/status/"

    def auth_flow(self, request: Any) -> Generator[Any, Any, None]:
        """Yield the request, and then polls for its answer, until the answer arrives.

        Raises:
            ReadTimeout: of the HTTP library; there is no answer after the client's time limit.
        """
        if request.method == "POST":
            request.url = self._function
        request.headers["NVCF-POLL-SECONDS"] = POLL_SECONDS
        limit = request.extensions.get("timeout", {}).get("read")
        deadline = None if limit is None else time.monotonic() + limit
        response = yield request
        while response.status_code == 202 and (identifier := response.headers.get("NVCF-REQID")):
            if deadline is not None and time.monotonic() > deadline:
                raise self._http.ReadTimeout(
                    f"the function has not answered within {limit} seconds", request=request
                )
            time.sleep(PAUSE)
            names = ("Authorization", "NVCF-POLL-SECONDS")
            headers = {name: request.headers[name] for name in names if name in request.headers}
            address = self._status + quote(identifier, safe="")
            response = yield self._http.Request(
                "GET", address, headers=headers, extensions=request.extensions
            )
