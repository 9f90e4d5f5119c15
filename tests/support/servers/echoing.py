"""A local server that gives log-probabilities of prompts as vLLM, SGLang or llama-cpp-python do."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from tests.support.servers.threads import serve_in_thread

Scorer = Callable[[str], tuple[list[str], list[float]]]
"""(text) → its tokens, and the log-probability of each given those before it."""


def copying(text: str) -> tuple[list[str], list[float]]:
    """Score a text by a model that only copies: what came after the same word before has the probability 0.9."""
    tokens = re.findall(r"\s?\w+|\s?[^\w\s]|\s", text)
    logprobs = []
    after = {}
    for before, token in zip(["", *tokens], tokens, strict=False):
        logprobs.append(
            math.log(0.9 if after.get(before) == token else 0.001 * (1 + len(token)))
        )
        after[before] = token
    return tokens, logprobs


WORDS = " yes it is"
"""What the server writes if it tells log-probabilities of answers."""


class EchoServer:
    """Serves one model at an address.

    Args:
        way: how it gives log-probabilities: `echo`, `prompt_logprobs` or `generate`; `answers` for tokens that it
            writes alone, also in chats; `none` for a server that does not.
        score: the model.
        is_shifted: whether each token has the number of the token after it, as in llama-cpp-python without a token for
            the start of a text.
        splits: whether the texts of tokens lack their first space, as those of SentencePiece do in vLLM.

    Attributes:
        bodies: the bodies of the requests with a log-probability.
        answered: the prompts of the requests without one.
        url: the address, while the server answers.
    """

    def __init__(
        self,
        way: str,
        score: Scorer = copying,
        is_shifted: bool = False,
        splits: bool = False,
    ):
        self.way = way
        self.score = score
        self.is_shifted = is_shifted
        self.splits = splits
        self.bodies: list[dict[str, Any]] = []
        self.answered: list[str] = []
        server = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                self._send(
                    {"object": "list", "data": [{"id": "small", "object": "model"}]}
                )

            def do_POST(self) -> None:
                body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
                try:
                    self._send(server.answer(self.path, body))
                except ValueError as error:
                    self._send({"error": {"message": str(error)}}, 400)
                except TimeoutError:
                    self._send({"error": {"message": "overloaded"}}, 503)

            def _send(self, content: Any, status: int = 200) -> None:
                data = json.dumps(content).encode()
                self.send_response(status)
                self.send_header("Content-Type", "application/json")
                self.send_header("Content-Length", str(len(data)))
                self.end_headers()
                self.wfile.write(data)

            def log_message(self, format: str, *arguments: Any) -> None:
                pass

        self._handler = Handler
        self._serving = ExitStack()

    def __enter__(self) -> EchoServer:
        """Serve, and set the address."""
        http = ThreadingHTTPServer(("127.0.0.1", 0), self._handler)
        address = self._serving.enter_context(serve_in_thread(http))
        self.url = f"{address}/v1"
        return self

    def __exit__(self, *error: object) -> None:
        self._serving.close()

    def answer(self, path: str, body: dict[str, Any]) -> dict[str, Any]:
        """Return the reply to a request; raise a `ValueError` for one that the server refuses."""
        if path == "/generate" and self.way == "generate":
            self.bodies.append(body)
            tokens, logprobs = self._scores(body["text"])
            rows = [
                [value, 7, token] for token, value in zip(tokens, logprobs, strict=True)
            ]
            return {
                "text": " yes",
                "meta_info": {"input_token_logprobs": rows, "prompt_tokens": len(rows)},
            }
        if self.way == "answers" and body.get("logprobs"):
            return self._write(path, body)
        if path != "/v1/completions":
            raise ValueError(f"no route {path}")
        usage = {
            "prompt_tokens": len(self.score(body["prompt"])[0]),
            "completion_tokens": 1,
        }
        choice: dict[str, Any] = {
            "index": 0,
            "text": " yes",
            "finish_reason": "length",
            "logprobs": None,
        }
        if body.get("echo") and self.way == "echo":
            self.bodies.append(body)
            tokens, logprobs = self._scores(body["prompt"])
            choice["text"] = body["prompt"] + " yes"
            tops = [
                None,
                *(
                    {token: value}
                    for token, value in zip(tokens[1:], logprobs[1:], strict=True)
                ),
                {" yes": -0.5},
            ]
            own = {
                "tokens": [*tokens, " yes"],
                "token_logprobs": [*logprobs, -0.5],
                "top_logprobs": tops,
            }
            choice["logprobs"] = own
        elif "prompt_logprobs" in body and self.way == "prompt_logprobs":
            self.bodies.append(body)
            tokens, logprobs = self._scores(body["prompt"])
            about = [
                {"logprob": value, "decoded_token": token}
                for token, value in zip(tokens, logprobs, strict=True)
            ]
            choice["prompt_logprobs"] = [
                None,
                *({str(number): top} for number, top in enumerate(about[1:])),
            ]
        elif "echo" in body or "prompt_logprobs" in body:
            raise ValueError("Unrecognized request argument supplied")
        else:
            self.answered.append(body["prompt"])
        return {
            "object": "text_completion",
            "model": "small",
            "choices": [choice],
            "usage": usage,
        }

    def _write(self, path: str, body: dict[str, Any]) -> dict[str, Any]:
        """Write the same words after each prompt, the first of which its model finds less likely than another one."""
        if body.get("echo"):
            raise ValueError("echo is not supported")
        self.bodies.append(body)
        prompt = (
            body["prompt"]
            if "prompt" in body
            else "".join(turn["content"] for turn in body["messages"])
        )
        rows = [
            (token, value, {token: value, " no": -1.5})
            for token, value in list(zip(*self.score(prompt + WORDS), strict=True))[-3:]
        ]
        choice: dict[str, Any] = {"index": 0, "finish_reason": "length"}
        if path == "/v1/completions":
            tokens, values, tops = map(list, zip(*rows, strict=True))
            choice |= {
                "text": WORDS,
                "logprobs": {
                    "tokens": tokens,
                    "token_logprobs": values,
                    "top_logprobs": tops,
                },
            }
        else:
            content = [
                {
                    "token": token,
                    "logprob": value,
                    "top_logprobs": [
                        {"token": name, "logprob": p} for name, p in top.items()
                    ],
                }
                for token, value, top in rows
            ]
            choice |= {
                "message": {"role": "assistant", "content": WORDS},
                "logprobs": {"content": content},
            }
        usage = {
            "prompt_tokens": len(self.score(prompt)[0]),
            "completion_tokens": len(rows),
        }
        return {
            "object": "text_completion",
            "model": "small",
            "choices": [choice],
            "usage": usage,
        }

    def _scores(self, text: str) -> tuple[list[str], Sequence[float | None]]:
        tokens, logprobs = self.score(text)
        shown = [token.removeprefix(" ") for token in tokens] if self.splits else tokens
        own: list[float | None] = [
            None,
            *(logprobs[2:] if self.is_shifted else logprobs[1:]),
        ]
        return shown, [*own, -9.0] if self.is_shifted else own
