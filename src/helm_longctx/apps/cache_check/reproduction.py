"""Writes a shell script that shows a difference with curl alone, in at most five requests."""

import json
import re
import shlex
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

from helm_longctx.apps.cache_check.boundary import Boundary
from helm_longctx.apps.cache_check.prompts import (
    CheckPrompt,
    RegisterQuestion,
    lines_for,
)
from helm_longctx.apps.cache_check.states import COLD, STATES, Server
from helm_longctx.apps.cache_check.verdict import StateCell
from helm_longctx.writing import replace_file, replace_page

_MOST_BEFORE = 3
"""Most prompts that are sent before a question."""


class _Step(NamedTuple):
    """A request of a script.

    Args:
        title: what is printed before its answer, or empty if the answer is not shown.
        values: the right values.
    """

    prompt: CheckPrompt
    title: str = ""
    values: Sequence[int] = ()


def write_script(
    server: Server,
    cell: StateCell,
    boundary: Boundary | None,
    folder: Path,
) -> Path | None:
    """Write the script and the bodies of its requests; return None if the state needs requests at the same time.

    The script sends a cold copy of the question, then what brings the server into the state, and then the question.
    With a boundary, it does so with the shortest shared beginning that shows the difference, and with the longest one
    that does not. Answers are shown with log-probabilities if no value is lost.
    """
    state = STATES[cell.state]
    if state.siblings or cell.example is None:
        return None
    steps = list(_list_steps(cell, boundary))
    copies = dict[int, str]()
    name = f"reproduce-{'-'.join(re.findall('[A-Za-z]+', cell.name))}-{cell.length}"
    bodies = folder / name
    bodies.mkdir(parents=True, exist_ok=True)
    for number, step in enumerate(steps):
        body = server.client.body(server.request(step.prompt))
        dropped = {"top_logprobs", *(["logprobs"] if cell.worse else [])}
        body = {name: value for name, value in body.items() if name not in dropped}
        body |= {"stream": True} if state.aborts and not step.title else {}
        # The server has seen these prompts, so each run of the script has copies with other numbers, as long as these.
        copy = copies.setdefault(step.prompt.copy, f"{len(copies) + 1}COPY")
        text = json.dumps(body).replace(str(step.prompt.copy), copy)
        replace_page(bodies / f"{number}.json", text.encode())
    path = folder / f"{name}.sh"
    replace_file(path, _make_script(server, name, steps, state.aborts).encode())
    path.chmod(0o755)
    return path


def _list_steps(cell: StateCell, boundary: Boundary | None) -> Iterator[_Step]:
    state = STATES[cell.state]
    if boundary:
        shots = []
        for shot in (boundary.first, boundary.before):
            if shot:
                shots.append(shot)
        about = "After another prompt with the same beginning of {} tokens"
        questions = {}
        for shot in shots:
            questions[about.format(shot.tokens)] = shot.reply.question()
    else:
        question = RegisterQuestion(
            cell.example or 0, lines_for(cell.length, cell.kind), kind=cell.kind
        )
        questions = {f"After {state.about}": question}
    cold = next(iter(questions.values()))
    yield _Step(cold.prompt(COLD), "Cold", cold.values)
    for title, question in questions.items():
        for make in state.before[:_MOST_BEFORE]:
            yield _Step(make(question, cell.state))
        yield _Step(question.prompt(cell.state), title, question.values)


def _make_script(
    server: Server,
    name: str,
    steps: Sequence[_Step],
    aborts: bool,
) -> str:
    client = server.client
    path = client.route(
        server.request(
            CheckPrompt(
                copy=0,
                lines=[(1, 1)],
                asked_lines=[0],
            )
        )
    ).removeprefix(client.provider.address_part)
    address = shlex.quote(f"{str(client.client.base_url).rstrip('/')}{path}")
    variable = client.settings.api_key_env
    if variable:
        key = f' -H "Authorization: Bearer ${variable}"'
    else:
        key = ""
    lines = []
    for number, step in enumerate(steps):
        if step.title:
            values = ", ".join(map(str, step.values))
            lines += [
                f"echo {shlex.quote(f'{step.title}. The right values are {values}:')}",
                f"send {number}",
            ]
        else:
            # A stream is closed after its first byte.
            lines.append(
                f"send {number}{' 2> /dev/null | head -c 1' * aborts} > /dev/null"
            )
    requests = "\n".join(lines)
    return f"""#!/bin/sh
# Shows that the answer to a question depends on what the server got before it.
# The questions are about copies of one text with different numbers in the first line.
cd "$(dirname "$0")/{name}" || exit 1
copy=$(date +%s | tail -c 9)
send() {{ sed "s/COPY/$copy/" "$1.json" | curl -sSN -H 'Content-Type: application/json'{key} -d @- {address}; echo; }}
{requests}
"""
