"""Calls functions in NVIDIA's cloud (NVCF). A function has one address for all requests, and may answer later.

While a function works, the cloud answers 202 with the request's id in `NVCF-REQID`. The answer is then fetched from
`…/pexec/status/ID`, which holds each request for up to `NVCF-POLL-SECONDS`, and answers 202 again without an answer.
"""

import re
import time
from typing import Any
from urllib.parse import quote, urljoin

from helm_longctx.errors import bad_argument

_POLL_SECONDS = "60"
"""Seconds that the cloud is asked to hold a request before it answers with status 202."""

_PAUSE = 0.2
"""Seconds between two polls, if the cloud does not hold requests."""

_FUNCTION = re.compile(
    r"(?P<root>.*/pexec)(?P<function>/functions/[^/]+(/versions/[^/]+)?)"
)
_FORM = "https://api.nvcf.nvidia.com/v2/nvcf/pexec/functions/ID"


class FunctionTransport:
    """Sends the requests of an HTTP client to a function by another transport, and waits for the answers.

    Args:
        transport: the transport that sends; see `transport.Transport`.
        http: httpx or httpx2.
        base_url: the address of the function.

    Raises:
        InputError: `base_url` is not the address of a function.
    """

    def __init__(
        self,
        transport: Any,
        http: Any,
        base_url: str,
    ):
        address = _FUNCTION.match(base_url)
        if address is None:
            raise bad_argument(
                "client_spec.args",
                "base_url",
                base_url,
                f"a function's address with nvcf, {_FORM}",
            )
        self._transport = transport
        self._http = http
        self._function = http.URL(address[0])
        self._status = f"{address['root']}/status/"

    def close(self) -> None:
        """Close the idle connections."""
        self._transport.close()

    def handle_request(self, request: Any) -> Any:
        """Send a request, and then polls for its answer, until the answer arrives.

        Raises:
            ReadTimeout: of the HTTP library; there is no answer after the client's time limit.
        """
        if request.method == "POST":
            request.url = self._function
        request.headers["NVCF-POLL-SECONDS"] = _POLL_SECONDS
        limit = request.extensions.get("timeout", {}).get("read")
        if limit is None:
            deadline = None
        else:
            deadline = time.monotonic() + limit
        response = self._transport.handle_request(request)
        address = None
        while (next_address := self._find_poll(response, address)) is not None:
            address = next_address
            if deadline is not None and time.monotonic() > deadline:
                raise self._http.ReadTimeout(
                    f"the function has not answered within {limit} seconds"
                )
            response.read()
            time.sleep(_PAUSE)
            response = self._transport.handle_request(self._make_poll(request, address))
        return response

    def _find_poll(self, response: Any, address: str | None) -> str | None:
        """Return the address of the next poll, or None if a response is final.

        Args:
            address: the address of the last poll; None before the first one.
        """
        identifier = response.headers.get("NVCF-REQID")
        if response.status_code == 202 and identifier:
            return self._status + quote(identifier, safe="")
        if address is not None and response.has_redirect_location:
            # The client would send the whole request once more.
            return urljoin(address, response.headers["Location"])
        return None

    def _make_poll(self, request: Any, address: str) -> Any:
        names = ("Authorization", "NVCF-POLL-SECONDS")
        headers = {}
        for name in names:
            if name in request.headers:
                headers[name] = request.headers[name]
        return self._http.Request(
            "GET", address, headers=headers, extensions=request.extensions
        )
