"""Runs the local server with OpenAI's files and batches and Anthropic's message batches.

The server counts how often each request was paid for. Batches take a number of polls, some requests in them fail or
expire by plan, and results come in another order.
"""

from __future__ import annotations

import json
import random
import re
from collections import Counter
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from datetime import datetime, timezone
from typing import Any
from urllib.parse import parse_qs, urlsplit

from tests.support.servers import faults
from tests.support.servers.faults import STATUS, Fault, Plan
from tests.support.servers.llm import Answer, Call, Server, _Handler, run
from tests.support.servers.models import Model
from tests.support.servers.protocols import PROTOCOLS, Body

Fate = str | None
"""What happens to a request in a batch: `expired`, `canceled`, `missing` (no line tells of it), or None."""

MESSAGES = "/v1/messages"


@dataclass
class Batch:
    """A batch of requests.

    Attributes:
        paid: names of the requests that are paid for.
        rows: lines of the results, by name.
        polls: how often the batch still says that it is in progress.
    """

    id: str
    total: int
    metadata: dict[str, str]
    endpoint: str
    rows: dict[str, Body] = field(default_factory=dict, repr=False)
    polls: int = 0
    state: str = "in_progress"
    error: str | None = None
    created: datetime = field(default_factory=lambda: datetime.now(timezone.utc))

    def poll(self) -> str:
        """Return the state, and move on by one step."""
        if self.state == "in_progress" and self.polls <= 0:
            self.state = "ended"
        self.polls -= 1
        return self.state


class BatchServer(Server):
    """The local server with batches.

    Attributes:
        batches: all batches in the order of creation.
        files: the contents of files by identifier.
        paid: how often each request was answered in a batch, by its name.
        fate: returns the fate of a request by its prompt and how often it was in a batch before.
        polls: how often a new batch says that it is in progress.
        seconds_before: seconds until a batch is answered, for the cache of prompts.
        most_open: OpenAI's batches fail at once if more than so many are in progress.
        moment: called with the name of a step before it is done and, with `+`, after it, before the reply is sent.
        spoil: changes the lines of a batch's results, by the batch's identifier.
        gone: batches, files and steps to which the server answers 404; `results_url` if results were removed.
        ended: when batches ended; None if the server does not say it.
        unnamed: how many records of completed batches still have no names of their files.
    """

    def __init__(
        self,
        answer: Answer,
        plan: Plan = faults.none,
        models: Mapping[str, Model] | None = None,
    ):
        super().__init__(answer, plan, models)
        self.http.RequestHandlerClass = type(
            "Handler", (_BatchHandler,), {"service": self}
        )
        self.batches: dict[str, Batch] = {}
        self.files: dict[str, bytes] = {}
        self.paid: Counter[str] = Counter()
        self.fate: Callable[[str, int], Fate] = lambda prompt, before: None
        self.polls = 0
        self.most_open = 1000
        self.seconds_before = 0.0
        self.moment: Callable[[str], None] = lambda name: None
        self.spoil: Callable[[str, bytes], bytes] = lambda name, lines: lines
        self.gone: set[str] = set()
        self.ended: datetime | None = None
        self.unnamed = 0
        self._seen: Counter[str] = Counter()
        self._order = random.Random(0)

    def add_file(self, content: bytes) -> str:
        """Store a file, and return its name."""
        with self._lock:
            name = f"file-{len(self.files)}"
            self.files[name] = content
        return name

    def create(
        self,
        requests: list[tuple[str, str, Body]],
        endpoint: str,
        metadata: dict[str, str],
    ) -> Batch:
        """Create a batch of requests with name, path and body, and return it."""
        with self._lock:
            number = len(self.batches)
            batch = Batch(
                f"batch_{number}", len(requests), metadata, endpoint, polls=self.polls
            )
            is_full = (
                sum(batch.state == "in_progress" for batch in self.batches.values())
                >= self.most_open
            )
            if is_full:
                batch.state = "failed"
                batch.error = "Enqueued token limit reached for m in organization o."
            self.batches[batch.id] = batch
        assert len({name for name, _, _ in requests}) == len(requests)
        # The requests are answered later, all at the same time, so none of them finds what another one writes.
        self.cache.seconds_ahead, self.cache.is_frozen = self.seconds_before, True
        for name, path, body in [] if is_full else requests:
            row = self._row(path, body)
            if row is not None:
                batch.rows[name] = row
                self.paid[name] += row["paid"]
        self.cache.seconds_ahead, self.cache.is_frozen = 0.0, False
        return batch

    def cancel(self, batch: Batch) -> None:
        """Cancel a batch, so that every second request stays without an answer."""
        for name in list(batch.rows)[::2]:
            self.paid[name] -= batch.rows[name]["paid"]
            batch.rows[name] = {"paid": 0, "fate": "canceled"}
        batch.state = "cancelled"

    def results(self, batch: Batch) -> list[tuple[str, Body]]:
        """Return names and rows in an order of the server's own."""
        rows = list(batch.rows.items())
        self._order.shuffle(rows)
        return rows

    def _row(self, path: str, body: Body) -> Body | None:
        prompt = PROTOCOLS[path].prompt(body)
        with self._lock:
            before, self._seen[prompt] = self._seen[prompt], self._seen[prompt] + 1
        fate = self.fate(prompt, before)
        fault = self.plan(prompt, before)
        if fate:
            return None if fate == "missing" else {"paid": 0, "fate": fate}
        if refusal := self.decline(path, body):
            return {
                "paid": 0,
                "status": refusal.status,
                "error": {"type": refusal.kind, "message": refusal.message},
            }
        if fault in STATUS:
            kind = "invalid_request_error" if STATUS[fault] == 400 else "api_error"
            message = _MESSAGES.get(fault)
            return {
                "paid": 0,
                "status": STATUS[fault],
                "error": {"type": kind, "message": message or "It went wrong."},
            }
        call = Call(path, body, prompt, "", fault)
        return {"paid": 1, "body": PROTOCOLS[path].whole(body, self.reply(call))}


_MESSAGES = {
    Fault.FLAGGED: "Invalid prompt: your prompt was flagged as potentially violating our usage policy.",
    Fault.TOO_LONG: "This model's maximum context length is 8192 tokens. Please reduce the length of the messages.",
}


class _BatchHandler(_Handler):
    service: BatchServer

    def do_POST(self) -> None:  # noqa: N802
        path = urlsplit(self.path).path
        for pattern, step in _POST.items():
            if match := re.fullmatch(pattern, path):
                return self._step(
                    step,
                    self.rfile.read(int(self.headers["Content-Length"])),
                    *match.groups(),
                )
        super().do_POST()

    def do_GET(self) -> None:  # noqa: N802
        path = urlsplit(self.path).path
        for pattern, step in _GET.items():
            if match := re.fullmatch(pattern, path):
                return self._step(step, *match.groups())
        self._send(json.dumps({"error": {"message": "Not found"}}), None, 404)

    def _step(self, step: Callable[..., Body | list[Body]], *arguments: Any) -> None:
        name = step.__name__.strip("_")
        if self.service.gone & {
            name,
            *(argument for argument in arguments if isinstance(argument, str)),
        }:
            return self._send(
                json.dumps(
                    {"error": {"type": "not_found_error", "message": "Not found"}}
                ),
                None,
                404,
            )
        try:
            self.service.moment(name)
            content = step(self, *arguments)
            self.service.moment(f"{name}+")
            if isinstance(content, list):
                return self._send_lines(arguments[0], content)
            self._send(json.dumps(content) + "\n", None)
        except ConnectionError:  # lost on purpose, or the client is gone
            self.close_connection = True

    def _send_lines(self, name: str, lines: list[Body]) -> None:
        text = "".join(json.dumps(line, ensure_ascii=False) + "\n" for line in lines)
        content = self.service.spoil(name, text.encode("utf-8", "surrogatepass"))
        self.send_response(200)
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)

    def _upload(self, content: bytes) -> Body:
        boundary = (
            b"--" + self.headers["Content-Type"].partition("boundary=")[2].encode()
        )
        part = next(
            part for part in content.split(boundary) if b'name="file"' in part[:200]
        )
        data = part.partition(b"\r\n\r\n")[2].removesuffix(b"\r\n")
        assert len(data) <= 200_000_000
        file = {
            "id": self.service.add_file(data),
            "object": "file",
            "bytes": len(data),
            "created_at": 1,
        }
        return {**file, "filename": "x", "purpose": "batch", "status": "processed"}

    def _create_openai(self, content: bytes) -> Body:
        body = json.loads(content)
        rows = [
            json.loads(line)
            for line in self.service.files[body["input_file_id"]].splitlines()
        ]
        assert {row["url"] for row in rows} == {body["endpoint"]}
        requests = [(row["custom_id"], row["url"], row["body"]) for row in rows]
        return self._openai(
            self.service.create(requests, body["endpoint"], body.get("metadata") or {})
        )

    def _create_anthropic(self, content: bytes) -> Body:
        assert len(content) <= 256_000_000
        rows = json.loads(content)["requests"]
        assert all(
            re.fullmatch(r"[a-zA-Z0-9_-]{1,64}", row["custom_id"]) for row in rows
        )
        requests = [(row["custom_id"], MESSAGES, row["params"]) for row in rows]
        return self._anthropic(self.service.create(requests, MESSAGES, {}))

    def _list_openai(self) -> Body:
        return self._list_page("after", self._openai)

    def _list_anthropic(self) -> Body:
        return self._list_page("after_id", self._anthropic)

    def _retrieve_openai(self, name: str) -> Body:
        self.service.batches[name].poll()
        return self._openai(self.service.batches[name])

    def _retrieve_anthropic(self, name: str) -> Body:
        self.service.batches[name].poll()
        return self._anthropic(self.service.batches[name])

    def _cancel_openai(self, content: bytes, name: str) -> Body:
        self.service.cancel(self.service.batches[name])
        return self._openai(self.service.batches[name])

    def _cancel_anthropic(self, content: bytes, name: str) -> Body:
        self.service.cancel(self.service.batches[name])
        return self._anthropic(self.service.batches[name])

    def _content(self, file: str) -> list[Body]:
        kind, _, name = file.partition("-")
        rows = self.service.results(self.service.batches[name])
        return [
            _openai_line(name, row)
            for name, row in rows
            if ("body" in row) == (kind == "output")
        ]

    def _results(self, name: str) -> list[Body]:
        return [
            _anthropic_line(name, row)
            for name, row in self.service.results(self.service.batches[name])
        ]

    def _list_page(self, cursor: str, show: Callable[[Batch], Body]) -> Body:
        query = parse_qs(urlsplit(self.path).query)
        batches = list(self.service.batches.values())[::-1]
        for batch in batches:
            batch.poll()
        if after := query.get(cursor):
            batches = batches[1 + [batch.id for batch in batches].index(after[0]) :]
        page = batches[: min(3, int(query["limit"][0]))]
        ends = {"first_id": page[0].id, "last_id": page[-1].id} if page else {}
        return {
            "object": "list",
            "data": [show(b) for b in page],
            "has_more": len(page) < len(batches),
            **ends,
        }

    def _openai(self, batch: Batch) -> Body:
        failed = sum("body" not in row for row in batch.rows.values())
        counts = {
            "total": batch.total,
            "completed": len(batch.rows) - failed,
            "failed": failed,
        }
        is_expired = any(row.get("fate") == "expired" for row in batch.rows.values())
        status = {"ended": "expired" if is_expired else "completed"}.get(
            batch.state, batch.state
        )
        body: Body = {
            "id": batch.id,
            "object": "batch",
            "status": status,
            "endpoint": batch.endpoint,
        }
        body |= {
            "completion_window": "24h",
            "created_at": int(batch.created.timestamp()),
            "input_file_id": "x",
        }
        body |= {"metadata": batch.metadata, "request_counts": counts}
        if self.service.ended:
            body["completed_at"] = int(self.service.ended.timestamp())
        is_done = status not in ("in_progress", "failed")
        if is_done and self.service.unnamed > 0:
            self.service.unnamed -= 1
        elif is_done:
            body |= {
                f"{kind}_file_id": f"{kind}-{batch.id}" for kind in ("output", "error")
            }
        if batch.error:
            body["errors"] = {
                "object": "list",
                "data": [{"code": "token_limit_exceeded", "message": batch.error}],
            }
        return body

    def _anthropic(self, batch: Batch) -> Body:
        ended = batch.state != "in_progress"
        kinds = Counter(
            _anthropic_line("", row)["result"]["type"]
            for row in batch.rows.values()
            if ended
        )
        names = ("succeeded", "errored", "canceled", "expired")
        counts = {
            "processing": batch.total - kinds.total(),
            **{name: kinds[name] for name in names},
        }
        body = {
            "id": batch.id,
            "type": "message_batch",
            "processing_status": "ended" if ended else "in_progress",
        }
        body |= {
            "created_at": batch.created.isoformat(),
            "expires_at": batch.created.isoformat(),
        }
        url = (
            f"{self.service.address}/v1/messages/batches/{batch.id}/results"
            if ended
            else None
        )
        url = None if "results_url" in self.service.gone else url
        if ended and self.service.unnamed > 0:
            self.service.unnamed -= 1
            url = None
        if self.service.ended:
            body["ended_at"] = self.service.ended.isoformat()
        return {**body, "request_counts": counts, "results_url": url}


def _openai_line(name: str, row: Body) -> Body:
    line: Body = {
        "id": "batch_req_1",
        "custom_id": name,
        "response": None,
        "error": None,
    }
    if row.get("fate"):
        message = (
            "This request could not be executed before the completion window expired."
        )
        return {**line, "error": {"code": "batch_expired", "message": message}}
    content = row.get("body") or {"error": row["error"]}
    return {
        **line,
        "response": {
            "status_code": row.get("status", 200),
            "request_id": "1",
            "body": content,
        },
    }


def _anthropic_line(name: str, row: Body) -> Body:
    if fate := row.get("fate"):
        result: Body = {"type": fate}
    elif "body" in row:
        result = {"type": "succeeded", "message": row["body"]}
    else:
        result = {"type": "errored", "error": {"type": "error", "error": row["error"]}}
    return {"custom_id": name, "result": result}


_POST: dict[str, Callable[..., Any]] = {
    "/v1/files": _BatchHandler._upload,
    "/v1/batches": _BatchHandler._create_openai,
    "/v1/batches/([^/]+)/cancel": _BatchHandler._cancel_openai,
    "/v1/messages/batches": _BatchHandler._create_anthropic,
    "/v1/messages/batches/([^/]+)/cancel": _BatchHandler._cancel_anthropic,
}

_GET: dict[str, Callable[..., Any]] = {
    "/v1/batches": _BatchHandler._list_openai,
    "/v1/batches/([^/]+)": _BatchHandler._retrieve_openai,
    "/v1/files/([^/]+)/content": _BatchHandler._content,
    "/v1/messages/batches": _BatchHandler._list_anthropic,
    "/v1/messages/batches/([^/]+)": _BatchHandler._retrieve_anthropic,
    "/v1/messages/batches/([^/]+)/results": _BatchHandler._results,
}


def serve_batches(
    answer: Answer, plan: Plan = faults.none, models: Mapping[str, Model] | None = None
) -> AbstractContextManager[BatchServer]:
    """Run a server with batches on the loopback interface until the block ends."""
    return run(BatchServer(answer, plan, models))
