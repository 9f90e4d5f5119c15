"""A server whose model makes probes of made sessions, compacts, answers and judges, by rules."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Callable, Sequence
from typing import Any

from helm_longctx.apps.compaction.probes import squeeze
from helm_longctx.apps.compaction.samples import make_session
from helm_longctx.apps.compaction.scoring import ExtractiveReader
from tests.support.json_http import JsonHandler, ModelServer

GUESSABLE = "Which planet is the third from the sun?"


def keep_all(line: str) -> bool:
    """Keep a line of a summary."""
    return True


class AgentServer(ModelServer):
    """A model that knows the probes of sessions, and nothing else.

    Args:
        seeds: the seeds of the sessions.
        keeps: whether a summary keeps a line.
        is_exact: whether the probes can be scored by a rule.

    Attributes:
        prompts: all prompts that were sent.
        kinds: how often each kind of request was sent.
        fails: for a kind of request whether the next one fails.
    """

    def __init__(
        self,
        seeds: Sequence[int],
        keeps: Callable[[str], bool] = keep_all,
        is_exact: bool = True,
    ):
        self.raws: list[dict[str, Any]] = []
        for seed in seeds:
            self.raws += make_session(seed)[1]
        self.keeps = keeps
        self.is_exact = is_exact
        self.prompts: list[str] = []
        self.bodies: list[dict[str, Any]] = []
        self.kinds: Counter[str] = Counter()
        self.fails: Callable[[str], bool] = lambda kind: False

    def handle(self, handler: JsonHandler) -> None:
        """Answer a request, or fail with the status 400."""
        body = handler.read_body()
        self.bodies.append(body)
        if handler.path.endswith("/responses/compact"):
            handler.send_json(200, self.compact_items(body))
            return
        if handler.path.endswith("/responses"):
            handler.send_json(200, self.respond(body))
            return
        if "messages" not in body:
            handler.send_json(404, {"error": {"message": "it has no completions"}})
            return
        prompt = body["messages"][-1]["content"]
        kind = self.kind_of(prompt)
        self.prompts.append(prompt)
        self.kinds[kind] += 1
        if self.fails(kind):
            handler.send_json(400, {"error": {"message": "no"}})
            return
        text = getattr(self, kind)(prompt)
        usage = {"prompt_tokens": len(prompt) // 4, "completion_tokens": 10}
        message = {"role": "assistant", "content": text}
        handler.send_json(200, self.reply({"message": message}, usage))

    def kind_of(self, prompt: str) -> str:
        """Return the kind of a request: the name of the method that answers it."""
        if "Write a JSON list and nothing else" in prompt:
            return "make_probes"
        if "is too long to keep" in prompt:
            return "summarize"
        if "Known answer:" in prompt:
            return "judge"
        if "Answer the questions below" in prompt:
            return "answer_questions"
        return "greet"

    def greet(self, prompt: str) -> str:
        """Answer the request that finds out what the server offers."""
        return "Hello."

    def make_probes(self, prompt: str) -> str:
        """Return the probes of the part, and three that must be left out."""
        part = squeeze(prompt)
        rows = []
        for raw in self.raws:
            if raw["quote"] in part:
                rows.append({**raw, "exact": self.is_exact})
        lost = {"kind": "facts", "exact": True, "quote": "not in the transcript"}
        rows.append({**lost, "question": "Where is it?", "answer": "nowhere"})
        if rows[0].get("quote") in part:
            quote = rows[0]["quote"]
            word = quote.split()[0]
            guessed = {"kind": "facts", "exact": False, "quote": quote}
            rows.append({**guessed, "question": GUESSABLE, "answer": "Earth"})
            unanswered = {"kind": "state", "exact": False, "quote": quote}
            rows.append({**unanswered, "question": "Zzyx qwv brrt?", "answer": word})
        return f"Here they are:\n```json\n{json.dumps(rows)}\n```"

    def summarize(self, prompt: str) -> str:
        """Return the lines of a text that are kept."""
        text = prompt.partition("<text>\n")[2].rpartition("\n</text>")[0]
        return "\n".join(line for line in text.splitlines() if self.keeps(line))

    def answer_questions(self, prompt: str) -> str:
        """Answer each question with the best sentence of the transcript."""
        context = ""
        if "<transcript>" in prompt:
            context = prompt.partition("<transcript>\n")[2].rpartition("</transcript>")[
                0
            ]
        questions = re.findall(
            r"^\d+\. (.*)$", prompt.rpartition("write: unknown")[2], re.MULTILINE
        )
        replies = ExtractiveReader().answer(context, questions)
        lines = []
        for number, (question, reply) in enumerate(
            zip(questions, replies, strict=True), 1
        ):
            text = "Earth" if question == GUESSABLE else reply.text
            lines.append(f"{number}. {text}")
        return "\n".join(lines)

    def judge(self, prompt: str) -> str:
        """Return whether the reply has the known answer."""
        known = prompt.partition("Known answer: ")[2].partition("\nReply: ")
        is_right = known[0].lower() in known[2].lower()
        return json.dumps({"right": is_right})

    def compact_items(self, body: dict[str, Any]) -> dict[str, Any]:
        """Return what OpenAI's compaction returns: the user's messages, and one item that only this server reads."""
        users = [item for item in body["input"] if item.get("role") == "user"]
        hidden = [json.dumps(item) for item in body["input"] if item not in users]
        output = [
            {
                "type": "message",
                "role": "user",
                "content": [{"type": "input_text", "text": item["content"]}],
            }
            for item in users
        ]
        secret = {
            "type": "compaction",
            "id": "c1",
            "encrypted_content": "\n".join(hidden),
        }
        return {
            "id": "r1",
            "object": "response.compaction",
            "output": [*output, secret],
            "usage": {"input_tokens": 100, "output_tokens": 50, "total_tokens": 150},
        }

    def respond(self, body: dict[str, Any]) -> dict[str, Any]:
        """Answer questions from the items of a compaction."""
        *items, question = body["input"]
        texts = []
        for item in items:
            text = item.get("encrypted_content", item.get("content"))
            texts.append(str(text).replace("\\n", "\n").replace("\\\\n", "\n"))
        context = "\n".join(texts)
        prompt = f"<transcript>\n{context}</transcript>\n{question['content']}"
        text = self.answer_questions(prompt)
        content = [{"type": "output_text", "text": text, "annotations": []}]
        message = {
            "type": "message",
            "id": "m",
            "role": "assistant",
            "status": "completed",
        }
        return {
            "id": "r2",
            "object": "response",
            "output": [{**message, "content": content}],
            "usage": {"input_tokens": 120, "output_tokens": 20, "total_tokens": 140},
        }
