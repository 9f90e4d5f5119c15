"""The method `agent`: the model reads the context by tools, with native tool calls.

The tools are usual for agents on long documents (search, open, find next: BrowseComp's tools for pages, and
GraphReader, arXiv 2406.14550, without its graph). No published code has the same ones, so names and wording are ours.
`search` ranks chunks by BM25, as `method=retrieve`. Positions are characters of the context. A tool that gets wrong
arguments says so, and the loop continues. After `turns` requests, a last one asks for the answer.
"""

from collections.abc import Mapping
from functools import cached_property
from typing import Any

from helm_longctx.tasks.methods.chunks import find_best, split
from helm_longctx.tasks.methods.method import Method, Question, ToolCall

_ASKED = (
    "Solve the task below. It is about a text of {size} characters that you cannot see"
    " directly. Read it with the tools. When you know the answer, write only the"
    " answer, in the form that the task asks for.\n\n{task}"
)
_LAST = "Do not use tools any more. Write only the answer to the task now, from what you have found."


def _tool(name: str, description: str, **parameters: tuple[str, str]) -> dict[str, Any]:
    fields = {}
    for field, (kind, about) in parameters.items():
        fields[field] = {"type": kind, "description": about}
    schema = {"type": "object", "properties": fields, "required": [*fields]}
    return {"name": name, "description": description, "parameters": schema}


_TOOLS = (
    _tool(
        "search",
        "Find the passages that match a query best.",
        query=("string", "Words to search for."),
    ),
    _tool(
        "open",
        "Read the text from a position on.",
        position=("integer", "Character position, from 0."),
    ),
    _tool(
        "find_next",
        "Find the next place after a position where the exact text stands, whatever its case.",
        text=("string", "The text to find."),
        position=(
            "integer",
            "Character position after which to look; -1 for the start.",
        ),
    ),
)


class _Reader:
    """Carries out calls of tools on a context, with pages of `page` characters and up to `hits` passages."""

    def __init__(
        self,
        context: str,
        page: int,
        hits: int,
    ):
        self._context = context
        self._page = page
        self._hits = hits
        self._chunks = split(context, 1500)

    def call(self, call: ToolCall) -> str:
        """Return the result of a call, or what is wrong with it."""
        tools = {
            "search": self._search,
            "open": self._open,
            "find_next": self._find_next,
        }
        tool = tools.get(call.name)
        if tool is None:
            return f"There is no tool {call.name!r}; use {', '.join(tools)}."
        try:
            return tool(call.arguments)
        except (KeyError, TypeError, ValueError, OverflowError) as error:
            return f"The arguments are wrong ({type(error).__name__}: {error}); see the tool's description."

    def _search(self, arguments: Mapping[str, Any]) -> str:
        starts = [0]
        for chunk in self._chunks:
            starts.append(starts[-1] + len(chunk))
        best = find_best(self._chunks, str(arguments["query"]), self._hits)
        shown = [f"[position {starts[index]}]\n{self._chunks[index]}" for index in best]
        return "\n\n".join(shown)

    def _open(self, arguments: Mapping[str, Any]) -> str:
        start = max(0, int(arguments["position"]))
        text = self._context[start : start + self._page]
        end = len(self._context)
        if not text:
            return f"The text ends at position {end}."
        return f"[positions {start} to {start + len(text)} of {end}]\n{text}"

    def _find_next(self, arguments: Mapping[str, Any]) -> str:
        text = _ignore_case(str(arguments["text"]))
        after = int(arguments["position"])
        start = self._lower_context.find(text, max(0, after + 1)) if text else -1
        if start < 0:
            return "There is no further place."
        around = self._context[max(0, start - 300) : start + len(text) + 300]
        return f"[position {start}]\n{around}"

    @cached_property
    def _lower_context(self) -> str:
        return _ignore_case(self._context)


def _ignore_case(text: str) -> str:
    """Return a text in lower case, in which each character keeps its position.

    `str.lower` makes two characters of İ, and another sigma at the end of a word than within it.
    """
    return text.replace("İ", "i").lower().replace("ς", "σ")


def answer(question: Question) -> str:
    """Answer in a loop of tool calls."""
    turns, page, hits, budget = (
        int(question.arguments[name]) for name in ("turns", "page", "hits", "output")
    )
    reader = _Reader(question.context, page, hits)
    context = question.context
    asked = _ASKED.format(size=len(context), task=question.task)
    messages: list[dict[str, Any]] = [{"role": "user", "content": asked}]
    for turn in range(1, turns + 1):
        reply = question.converse(
            messages, max(budget, question.max_tokens), f"turn {turn}", _TOOLS
        )
        if not reply.calls:
            question.note(turns=turn)
            return reply.answer
        messages.append(
            {
                "role": "assistant",
                "content": reply.text,
                "calls": [dict(vars(call)) for call in reply.calls],
                "reasoning": dict(reply.reasoning),
            }
        )
        for call in reply.calls:
            messages.append(
                {"role": "tool", "id": call.id, "content": reader.call(call)}
            )
    messages[-1] = {**messages[-1], "content": f"{messages[-1]['content']}\n\n{_LAST}"}
    question.note(turns=turns + 1)
    # Both protocols refuse calls in a conversation whose request has no tools.
    return question.converse(
        messages, max(budget, question.max_tokens), "answer", _TOOLS
    ).answer


AGENT = Method(
    "agent",
    "Lets the model search and read the context with tools, in a loop of native tool calls.",
    answer=answer,
    arguments={"turns": 20, "page": 4000, "hits": 5, "output": 2048},
    extra="retrieval",
    needs_tools=True,
)
