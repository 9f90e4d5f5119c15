"""The method `native_tools`: sends the tools of a task as definitions of the request, and returns the model's calls.

The prompt then has no definitions in its text. Each server puts them where its model's chat template wants them.
"""

from __future__ import annotations

import json
from dataclasses import replace

from helm_longctx.tasks.methods.method import Method, Question
from helm_longctx.tasks.task import Example, Settings, Task

_FIELDS = {
    "tools": "(They are defined with this request.)",
    "form": "Call the one tool that does this.",
}
"""What stands in the prompt in place of the definitions, and of the request to write a call as text."""


def _leave_out_definitions(task: Task, settings: Settings, example: Example) -> Example:
    return replace(example, fields={**example.fields, **_FIELDS})


def _answer(question: Question) -> str:
    """Return the calls as a JSON list, or the text of a reply without calls.

    Servers without a parser for their model leave its calls in the text, so the text is returned as it is.
    """
    messages = [{"role": "user", "content": question.text}]
    reply = question.converse(messages, question.max_tokens, "call", question.tools)
    if not reply.calls:
        return reply.text
    calls = [{"name": call.name, "arguments": call.arguments} for call in reply.calls]
    return json.dumps(calls, ensure_ascii=False)


NATIVE_TOOLS = Method(
    "native_tools",
    "Sends the tools of a task as definitions of the request, and scores the native"
    " calls of the reply.",
    ask=_leave_out_definitions,
    answer=_answer,
    fits=lambda task: set(_FIELDS) <= task.template.names,
    needs="tools in its prompts",
    needs_tools=True,
)
