"""The methods `recursive` and `agent` solve tasks of OOLONG, OOLONG-Pairs and RULER exactly, with scripted models."""

from __future__ import annotations

import re
from collections.abc import Callable, Generator, Sequence
from pathlib import Path

import pytest

from helm_longctx.benchmarks.oolong.data import DATASET, LABELLED_TEXT
from helm_longctx.benchmarks.oolong.prompts import PAIR_CONDITIONS
from helm_longctx.benchmarks.oolong.tasks import answer_synth
from helm_longctx.run_settings import MIRROR
from helm_longctx.runs.scores import read_steps
from tests.benchmarks.officeqa.fabricate import build_officeqa, make_rows
from tests.benchmarks.oolong.fabricate import build_oolong, synth_rows
from tests.benchmarks.oolong.rules import RULES, find_pairs
from tests.benchmarks.ruler.fabricate import build_sources
from tests.runner import making
from tests.runner.scripted_runs import MODEL, scores, serving
from tests.support.deployments import register_server
from tests.support.sandboxes import require_sandbox
from tests.support.servers.tools import Script, Turn, serve_tools

LENGTH = 8192
LABELLED = {
    row[LABELLED_TEXT]
    for split in ("test", "validation")
    for row in synth_rows(LENGTH, split)
}
LABELS = dict(
    re.findall(r"^(Date: .*) \|\| Label: (.*)$", "\n".join(LABELLED), re.MULTILINE)
)
"""What a model must know: the label of each line."""

OOLONG = [
    "oolong:task=imdb,length=8k,num_samples=7",
    f"oolong:task={DATASET},length=8k,num_samples=7",
    "oolong_pairs:length=8k",
]
NEEDLES = (
    "niah_single_1",
    "niah_single_3",
    "niah_multikey_2",
    "niah_multivalue",
    "niah_multiquery",
)
RULER = [
    f"ruler:task={task},length=4k,count_with=longctx/words,num_samples=2"
    for task in (*NEEDLES, "vt")
]

Plan = Generator[Turn, str, None]
"""The turns of a model, each after the result of the tool that it called before."""


@pytest.fixture(autouse=True)
def data(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Fabricate the data of both benchmarks."""
    build_oolong(tmp_path / "mirror")
    build_sources(tmp_path / "mirror")
    monkeypatch.setenv(MIRROR, str(tmp_path / "mirror"))
    monkeypatch.setenv("HELM_LONGCTX_WAIT", "0.001")


def solve(task: str, lines: str) -> str:
    """Answer a question of OOLONG from lines with labels."""
    if "list all pairs" in task:
        (rule,) = (
            rule
            for rule, condition in zip(RULES, PAIR_CONDITIONS, strict=True)
            if f"{condition}. " in task
        )
        return "\n".join(map(str, find_pairs(lines, rule)))
    if "In which month" in task:
        return "Answer: January 2023"
    answer = answer_synth([{"role": "user", "content": f"{lines}\n{task}"}])
    assert answer is not None
    return answer


def keys_of(task: str) -> list[str]:
    """Return the keys whose magic values a question of RULER asks for."""
    (query,) = re.findall(
        r"special magic \w+ for (.+) mentioned in the provided text\?", task
    )
    return re.split(r", (?:and )?| and ", query)


def value_of(task: str) -> str:
    """Return the value whose variables a question of RULER asks for."""
    return re.findall(r"assigned the value (\d+) in the text above", task)[-1]


def coder(prompt: str) -> str:
    """Let code find all that the task needs, and sub-models give labels; then set the answer."""
    if prompt.startswith("LABEL "):
        return LABELS[prompt.removeprefix("LABEL ")]
    task = prompt.partition("The task:\n")[2].partition("\n\nThe variable")[0]
    if "assigned the value" in task:
        return f"""```repl
import re
links, names = re.findall(r"VAR (\\w+) = (?:VAR )?(\\w+)", context), [{value_of(task)!r}]
for name in names:
    names += [link for link, other in links if other == name]
answer["content"] = ", ".join(names[1:])
answer["ready"] = True
```"""
    if "special magic" in task:
        return f"""I look for the values.
```repl
import re
for key in {keys_of(task)!r}:
    answer["content"] += " ".join(re.findall("for " + key + r" is: (\\S+)\\.", context)) + " "
```
```repl
answer["ready"] = True
```"""
    if "REPL output" not in prompt:
        return """```repl
lines = [line for line in context.split("\\n") if line.startswith("Date: ")]
labels = llm_query_batched(["LABEL " + line for line in lines])
for line, label in zip(lines, labels): print(line, "|| Label:", label)
```"""
    solution = solve(task, prompt.rpartition("REPL output:\n")[2])
    return f'```repl\nanswer["content"] = {solution!r}\nanswer["ready"] = True\n```'


@pytest.mark.parametrize("entry", [*OOLONG, *RULER])
def test_recursive_solves(
    entry: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A model that codes well gets every answer right, and asks sub-models for what code cannot know."""
    require_sandbox(monkeypatch)
    with serving(coder):
        run = making.make_run(
            tmp_path, f"{entry},style=chat,method=recursive{MODEL}", cache=False
        )
    scored = scores(run)
    assert {*scored.values()} == {1.0}, scored
    labels = {step["label"] for _, steps in read_steps(run) for step in steps}
    assert labels == (
        {"root turn 1", "root turn 2", "sub-call"}
        if entry in OOLONG
        else {"root turn 1"}
    )


def play(plan: Callable[[str], Plan]) -> Script:
    """Return a model that follows a plan: it has only the task and the results of its tools."""

    def script(task: str, results: Sequence[str]) -> Turn:
        turns = plan(task)
        turn = next(turns)
        for result in results:
            turn = turns.send(result)
        return turn

    return script


def read_all(task: str) -> Plan:
    """Open page after page, and then answer a question of OOLONG from all lines."""
    text = ""
    end = 0
    while True:
        page = yield Turn(tool="open", arguments={"position": len(text)})
        end = int(re.findall(r"^\[positions \d+ to \d+ of (\d+)\]", page)[0])
        text += page.partition("\n")[2]
        if len(text) == end:
            break
    lines = [
        f"{line} || Label: {LABELS[line]}"
        for line in text.split("\n")
        if line in LABELS
    ]
    yield Turn(solve(task.rpartition("\n")[2], "\n".join(lines)))


def find_each(text: str, pattern: str) -> Generator[Turn, str, list[str]]:
    """Go through all places of a text, and return what a pattern finds around them."""
    position = -1
    names = dict[str, None]()
    while True:
        result = yield Turn(
            tool="find_next", arguments={"text": text, "position": position}
        )
        if not (match := re.match(r"\[position (\d+)\]", result)):
            return [*names]
        position = int(match[1])
        names.update(dict.fromkeys(re.findall(pattern, result)))


def find_needles(task: str) -> Plan:
    """Find each place of each key, and answer with the values."""
    values: list[str] = []
    for key in keys_of(task):
        values += yield from find_each(f"for {key} is: ", rf"for {key} is: (\S+)\.")
    yield Turn(", ".join(values))


def follow_links(task: str) -> Plan:
    """Find the variables that have the value, then those that have these, and so on."""
    names = [value_of(task)]
    for name in names:
        names += yield from find_each(f"{name}", rf"VAR (\w+) = (?:VAR )?{name}\b")
    yield Turn(", ".join(names[1:]))


@pytest.mark.parametrize("entry", [*OOLONG, *RULER])
def test_agent_solves(entry: str, tmp_path: Path) -> None:
    """A model that uses its tools well gets every answer right within its turns."""
    plan = (
        read_all if entry in OOLONG else follow_links if "vt" in entry else find_needles
    )
    with serve_tools(play(plan)) as (address, bodies):
        register_server("corp/scripted", address)
        run = making.make_run(
            tmp_path, f"{entry},style=chat,method=agent,page=900{MODEL}", cache=False
        )
    scored = scores(run)
    assert {*scored.values()} == {1.0}, scored
    assert len(bodies) > 2 * len(scored)


ANSWERS = {row["question"]: row["answer"] for row in make_rows()}


def read_bulletin(task: str) -> Plan:
    """Find the third page of the issue, and give the right answer if the page is there."""
    page = yield Turn(
        tool="find_next", arguments={"text": "--- PAGE 3 ---", "position": -1}
    )
    (answer,) = [ANSWERS[question] for question in ANSWERS if question in task]
    read = answer if "Page 3 é" in page else "nothing"
    yield Turn(f"<FINAL_ANSWER>{read}</FINAL_ANSWER>")


def test_agent_reads_bulletins(tmp_path: Path) -> None:
    """A model that opens pages of OfficeQA's issues with its tools gets its answers right, beyond one window."""
    build_officeqa(tmp_path / "mirror")
    with serve_tools(play(read_bulletin)) as (address, bodies):
        register_server("corp/scripted", address)
        entry = "officeqa:length=32k,style=chat,method=agent,page=900"
        run = making.make_run(tmp_path, f"{entry}{MODEL}", cache=False)
    assert scores(run) == {"UID0001": 1.0, "UID0002": 1.0}
    assert len(bodies) == 4
