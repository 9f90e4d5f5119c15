"""Messages before a prompt, on their way to a client."""

from __future__ import annotations

import functools
from dataclasses import replace
from typing import Any

from helm.common.request import Request, RequestResult


def complete_messages(request: Request) -> Request:
    """A request with messages before its prompt, in the form that HELM's clients take: the prompt is the last message.

    In run files, caches and pages a prompt stands in `prompt`, whatever is before it.
    """
    if not (request.messages and request.prompt):
        return request
    return replace(request, prompt="", messages=[*request.messages, {"role": "user", "content": request.prompt}])


def register_messages() -> None:
    """Make HELM complete requests before a client gets them; it refuses those with prompt and messages. Idempotent."""
    from helm.clients.auto_client import AutoClient  # and every client with it, which commands do without

    theirs = AutoClient.make_request
    if hasattr(theirs, "completes_messages"):
        return

    @functools.wraps(theirs)
    def make_request(self: Any, request: Request) -> RequestResult:
        result: RequestResult = theirs(self, complete_messages(request))
        return result

    make_request.completes_messages = True  # type: ignore[attr-defined]
    AutoClient.make_request = make_request
