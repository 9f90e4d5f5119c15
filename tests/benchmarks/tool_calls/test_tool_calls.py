"""The questions of tool calls have one right answer, and two scorers that were written apart agree about answers."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from random import Random
from statistics import fmean
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from helm_longctx.benchmarks.tool_calls.baseline import answer_by_words
from helm_longctx.benchmarks.tool_calls.calls import Call, read_calls
from helm_longctx.benchmarks.tool_calls.prompts import NO_CALL
from helm_longctx.benchmarks.tool_calls.tasks import read_material
from helm_longctx.data.root import DataRoot
from helm_longctx.models.baselines.lexical import answer, recognise
from helm_longctx.tasks.registry import find_benchmark
from helm_longctx.tasks.task import MAIN_METRIC, Example, Settings, Task
from helm_longctx.tasks.token_estimate import estimate_tokens
from tests.support.tool_calls import second_score, solve_prompt

TASKS = {task.name: task for task in find_benchmark("tool_calls").tasks}

KINDS = pytest.mark.parametrize("kind", TASKS)

FUNCTION_WORDS = {
    "an",
    "is",
    "of",
    "to",
    "for",
    "on",
    "in",
    "its",
    "it",
    "what",
    "that",
}
FUNCTION_WORDS |= {"the", "a", "and", "with", "will", "do", "who", "by", "from", "into"}


def draw(
    task: Task,
    length: int = 4096,
    seed: int = 0,
    number: int = 1,
    context: str = "full",
) -> list[Example]:
    """Draw examples of a task, with or without the log."""
    chosen = "none" if context == "none" else "full"
    drawn = Settings(length, seed=seed, num_samples=number, context=chosen)
    return [*task.load(task, drawn, DataRoot.find("."))]


def prompt_of(task: Task, example: Example) -> str:
    """Return the text of a prompt."""
    return task.prompt(example).messages[-1]["content"]


def scores_of(task: Task, example: Example, prediction: str) -> dict[str, float]:
    """Return all scores of an answer."""
    record = {"prediction": prediction, "references": example.references}
    return task.scores({**record, **example.record})


@KINDS
@settings(max_examples=12, deadline=None)
@given(seed=st.integers(0, 10**9), length=st.sampled_from([2048, 4096, 9000]))
def test_another_program_finds_the_call(kind: str, seed: int, length: int) -> None:
    """A program that reads the prompt and knows the words finds the right call, which is valid."""
    task = TASKS[kind]
    (example,) = draw(task, length, seed)
    answer = solve_prompt(prompt_of(task, example))
    scores = scores_of(task, example, answer)
    assert set(scores.values()) == {1.0}, (answer, example.references)


@pytest.mark.parametrize("kind", ["identifier", "constraint", "replacement"])
def test_nothing_is_found_without_the_log(kind: str) -> None:
    """Without the log, what decides is not in the prompt."""
    task = TASKS[kind]
    examples = draw(task, number=20, context="none")
    for example in examples:
        call = json.loads(example.references[0])
        text = prompt_of(task, example)
        values = [
            value for value in call["arguments"].values() if isinstance(value, str)
        ]
        hidden = {
            "identifier": any(
                re.fullmatch(r"[kmprt]\d{5}-[a-f]", value) and value in text
                for value in values
            ),
            "constraint": any(
                re.fullmatch(r"T\d{7}", value) and value in text for value in values
            ),
            "replacement": "was replaced by" in text,
        }
        assert not hidden[kind]


@KINDS
@pytest.mark.parametrize(
    ("length", "least"), [(2048, 0.88), (4096, 0.92), (32768, 0.92)]
)
def test_prompts_fill_their_length(kind: str, length: int, least: float) -> None:
    """A prompt has 92 to 98 % of the length by the estimate of tokens, and hardly less at the shortest length."""
    task = TASKS[kind]
    text = prompt_of(task, draw(task, length)[0])
    assert least < estimate_tokens(text) / length < 0.98


@KINDS
def test_seeds_make_other_texts(kind: str) -> None:
    """The same seed makes the same prompts, however many there are; another seed or number makes others."""
    task = TASKS[kind]
    prompts = [prompt_of(task, example) for example in draw(task, number=3)]
    assert prompt_of(task, draw(task)[0]) == prompts[0]
    assert prompt_of(task, draw(task, seed=1)[0]) not in prompts
    assert len(set(prompts)) == 3


@KINDS
def test_a_question_is_the_same_at_each_length(kind: str) -> None:
    """A seed asks for the same calls at each length, so that answers are paired."""
    task = TASKS[kind]
    short = draw(task, 4096, 3, 5)
    long = draw(task, 16384, 3, 5)
    for one, other in zip(short, long, strict=True):
        assert one.references == other.references
        assert one.fields["question"] == other.fields["question"]
        assert one.depth == other.depth


@KINDS
def test_a_question_is_asked_in_several_logs(kind: str) -> None:
    """With `texts` each question has several logs, which are one cluster; the first one is the usual log."""
    task = TASKS[kind]
    chosen = Settings(4096, seed=3, num_samples=4, texts=2)
    examples = [*task.load(task, chosen, DataRoot.find("."))]
    assert [example.references for example in examples[::2]] == [
        example.references for example in draw(task, seed=3, number=2)
    ]
    assert prompt_of(task, examples[0]) == prompt_of(task, draw(task, seed=3)[0])
    for one, other in (examples[:2], examples[2:]):
        assert one.references == other.references
        assert one.fields["question"] == other.fields["question"]
        assert one.fields["context"] != other.fields["context"]
        assert one.group == other.group
    assert len({example.id for example in examples}) == 4


def test_what_decides_stands_at_its_depth() -> None:
    """The last replacement of a tool stands at the example's depth, wherever that is."""
    task = TASKS["replacement"]
    depths = []
    for example in draw(task, 16384, number=10):
        name = json.loads(example.references[0])["name"]
        log = example.fields["context"]
        depth = log.index(f"was replaced by {name}") / len(log)
        assert depth == pytest.approx(example.depth, abs=0.05)
        depths.append(depth)
    assert min(depths) < 0.4
    assert max(depths) > 0.8


def test_half_of_the_abstentions_have_a_call() -> None:
    """In about half of the examples a call is right, so a model that never calls has half of the points there, and none elsewhere."""
    for kind, task in TASKS.items():
        examples = draw(task, number=24)
        score = fmean(
            scores_of(task, example, NO_CALL)[MAIN_METRIC] for example in examples
        )
        assert (0.2 < score < 0.8) if kind == "abstention" else score == 0


@KINDS
@pytest.mark.parametrize("length", [4096, 16384])
def test_a_search_for_words_finds_no_call(kind: str, length: int) -> None:
    """The lexical model, which searches for the question's words, has at most one in ten calls right."""
    task = TASKS[kind]
    scores = []
    for example in draw(task, length, number=12):
        answer = answer_by_words(task.prompt(example).messages)
        assert answer is not None
        scores.append(scores_of(task, example, answer)[MAIN_METRIC])
    assert fmean(scores) <= 0.1


def words(text: str) -> set[str]:
    """Return the stems of the words of a text that are not function words: their first four letters."""
    other_words = set(re.findall("[a-z]+", text.lower())) - FUNCTION_WORDS
    return {word[:4] for word in other_words if len(word) > 2}


def test_questions_share_no_word_with_definitions_and_logs() -> None:
    """No question has a content word of a definition, an item or a site, in any form."""
    material = read_material()
    for action in material["actions"]:
        said = words(
            f"{action['does']} {action['amount'][0]} {action['choice']['about']}"
        )
        asked = words(f"{action['asked']} {action['amount'][1]}")
        for value, choice in action["choice"]["values"].items():
            asked |= words(choice)
            assert not words(value) & words(choice), value
        assert not said & asked, action["does"]
    for kind in ("subjects", "sites"):
        for said_word, asked_words in material[kind].items():
            assert not words(said_word) & words(asked_words)


RIGHT = {
    "name": "tavi_losu",
    "arguments": {"item": "k1", "count": 3, "tell": ["A", "B"]},
}
ARGUMENTS = json.dumps(RIGHT["arguments"])
SCHEMA = {
    "type": "object",
    "properties": {
        "item": {"type": "string"},
        "count": {"type": "integer"},
        "tell": {"type": "array", "items": {"type": "string"}},
    },
    "required": ["item"],
    "additionalProperties": False,
}
TOOLS = [{"name": "tavi_losu", "description": "Does.", "parameters": SCHEMA}]
FORMS: dict[str, Callable[[str, str], str]] = {
    "plain": lambda name, text: f'{{"name": "{name}", "arguments": {text}}}',
    "prose and fence": lambda name, text: (
        f'I call it [1]:\n```json\n{{"name": "{name}", "arguments": {text}}}\n```'
    ),
    "text of arguments": lambda name, text: json.dumps(
        {"name": name, "arguments": text}
    ),
    "OpenAI": lambda name, text: json.dumps(
        {
            "tool_calls": [
                {
                    "id": "c1",
                    "type": "function",
                    "function": {"name": name, "arguments": text},
                }
            ]
        }
    ),
    "Anthropic": lambda name, text: (
        f'[{{"type": "tool_use", "id": "t", "name": "{name}", "input": {text}}}]'
    ),
    "Hermes": lambda name, text: (
        f'<tool_call>\n{{"name": "{name}", "arguments": {text}}}\n</tool_call>'
    ),
    "Llama": lambda name, text: (
        f'<|python_tag|>{{"name": "{name}", "parameters": {text}}}'
    ),
    "Llama's function": lambda name, text: f"<function={name}>{text}</function>",
    "Mistral": lambda name, text: (
        f'[TOOL_CALLS] [{{"name": "{name}", "arguments": {text}}}]'
    ),
    "Mistral's newer": lambda name, text: f"[TOOL_CALLS]{name}[ARGS]{text}",
    "DeepSeek": lambda name, text: (
        f"<｜tool▁calls▁begin｜><｜tool▁call▁begin｜>{name}<｜tool▁sep｜>{text}"
        "<｜tool▁call▁end｜><｜tool▁calls▁end｜>"
    ),
    "DeepSeek's older": lambda name, text: (
        f"<｜tool▁call▁begin｜>function<｜tool▁sep｜>{name}\n```json\n{text}\n```<｜tool▁call▁end｜>"
    ),
}


@pytest.mark.parametrize("form", FORMS)
def test_forms_of_calls(form: str) -> None:
    """A call is read in each form of servers and models, also twice in one answer."""
    make = FORMS[form]
    one = make(str(RIGHT["name"]), ARGUMENTS)
    call = Call("tavi_losu", {"item": "k1", "count": 3, "tell": ["A", "B"]})
    assert read_calls(one, TOOLS) == [call]
    assert read_calls(f"{one}\n{one}", TOOLS) == [call, call]


def test_parameters_between_marks_have_their_types() -> None:
    """The values of Qwen3-Coder's form are read by the schema: a number stays text where the schema wants a text."""
    text = (
        "<tool_call>\n<function=tavi_losu>\n<parameter=item>\n12\n</parameter>\n"
        '<parameter=count>\n3\n</parameter>\n<parameter=tell>\n["A"]\n</parameter>\n</function>\n</tool_call>'
    )
    (call,) = read_calls(text, TOOLS)
    assert call.arguments == {"item": "12", "count": 3, "tell": ["A"]}


@pytest.mark.parametrize(
    ("prediction", "scores"),
    [
        ("", {"exact": 0, "single": 0, "name": 0, "arguments": 0}),
        ("NO_CALL", {"exact": 0, "single": 0, "name": 0, "arguments": 0}),
        (
            '{"name": "tavi_losu", "arguments": {"tell": ["A", "B"], "count": 3.0, "item": "k1"}}',
            {"exact": 1, "single": 1, "name": 1, "arguments": 1, "valid": 1},
        ),
        (
            '{"name": "tavi_losu", "arguments": {"tell": ["B", "A"], "count": 3, "item": "k1"}}',
            {"exact": 0, "single": 1, "name": 1, "arguments": 0, "valid": 1},
        ),
        (
            '{"name": "tavi_losu", "arguments": {"item": "k1", "count": "3", "tell": ["A", "B"]}}',
            {"exact": 0, "single": 1, "name": 1, "arguments": 0, "valid": 0},
        ),
        (
            '{"name": "other", "arguments": {"item": "k1", "count": 3, "tell": ["A", "B"]}}',
            {"exact": 0, "single": 1, "name": 0, "arguments": 1, "valid": 0},
        ),
        (
            '{"name": "tavi_losu", "arguments": "{broken"}',
            {"exact": 0, "single": 1, "name": 1, "arguments": 0, "valid": 0},
        ),
        (
            '{"name": "tavi_losu", "arguments": {"item": "k1", "count": true, "tell": []}}',
            {"exact": 0, "single": 1, "name": 1, "arguments": 0, "valid": 0},
        ),
    ],
)
def test_scores_tell_what_was_wrong(prediction: str, scores: dict[str, float]) -> None:
    """Each metric says its own part about an answer."""
    record = {"prediction": prediction, "references": [json.dumps(RIGHT)]}
    assert TASKS["definition"].score({**record, "tools": TOOLS}) == scores


@pytest.mark.parametrize(
    ("prediction", "score"),
    [
        ("NO_CALL", 1),
        ("The tool is off, so NO_CALL.", 1),
        ("", 0),
        ("I cannot do this.", 0),
        (f'NO_CALL {{"name": "tavi_losu", "arguments": {ARGUMENTS}}}', 0),
    ],
)
def test_no_call_must_be_said(prediction: str, score: float) -> None:
    """Where no call is right, an answer must say so and call nothing."""
    record = {"prediction": prediction, "references": [NO_CALL], "tools": TOOLS}
    assert TASKS["abstention"].score(record)["exact"] == score


def change(value: Any, random: Random) -> Any:
    """Return arguments with a random mistake, or with none that matters."""
    arguments = dict(value)
    key = random.choice([*arguments])
    kind = random.randrange(9)
    if kind == 0:
        del arguments[key]
    elif kind == 1:
        arguments[key] = random.choice([None, True, 1, 1.0, 1.5, "1", [], {}, ["x"]])
    elif kind == 2:
        arguments["extra"] = "x"
    elif kind == 3:
        arguments = dict(reversed(arguments.items()))
    elif kind == 4 and isinstance(arguments[key], int):
        arguments[key] = float(arguments[key])
    elif kind == 5 and isinstance(arguments[key], list):
        arguments[key] = arguments[key][::-1]
    elif kind == 6 and isinstance(arguments[key], str):
        arguments[key] += " "
    return arguments


def make_answer(example: Example, random: Random) -> str:
    """Return a made answer: calls with and without mistakes in a random form, with noise around and inside."""
    names = [tool["name"] for tool in example.record["tools"]]
    reference = example.references[0]
    parts = []
    for _ in range(random.choice([0, 1, 1, 1, 1, 2, 3])):
        if reference == NO_CALL or random.random() < 0.2:
            call = {"name": random.choice([*names, "ghost"]), "arguments": {"x": 1}}
        else:
            call = json.loads(reference)
        arguments = call["arguments"]
        if random.random() < 0.6:
            arguments = change(arguments, random)
        text = json.dumps(arguments, ensure_ascii=random.random() < 0.5)
        if random.random() < 0.05:
            text = text[: random.randrange(len(text))]
        parts.append(FORMS[random.choice([*FORMS])](call["name"], text))
    noise = ["", "", "", "NO_CALL", "I see {this} [1].", '{"a": 1}', "}{", "NaN"]
    parts.insert(random.randint(0, len(parts)), random.choice(noise))
    return random.choice(["\n", " "]).join(parts)


def test_two_scorers_agree_on_5000_made_answers() -> None:
    """The scorer and a second one, written apart from it and with jsonschema, give the same scores to 5,000 made answers."""
    random = Random(7)
    examples = []
    for task in TASKS.values():
        examples += [(task, example) for example in draw(task, number=20)]
    exact = 0.0
    for _ in range(5000):
        task, example = random.choice(examples)
        answer = make_answer(example, random)
        record = {"prediction": answer, "references": example.references}
        scores = task.score({**record, **example.record})
        second = second_score(answer, example.references[0], example.record["tools"])
        assert scores == second, answer
        exact += scores["exact"]
    # Right and wrong answers both occur often.
    assert 500 < exact < 4000


@settings(max_examples=40, deadline=None)
@given(st.text(max_size=200) | st.text('{}[]":,<>=|aE1.', max_size=80))
def test_scorers_read_every_answer(prediction: str) -> None:
    """Every text has a score in 0…1 of each metric."""
    record = {"prediction": prediction, "references": [json.dumps(RIGHT)]}
    scores = TASKS["definition"].scores({**record, "tools": TOOLS})
    assert all(0 <= score <= 1 for score in scores.values())


@pytest.mark.parametrize("part", ['{"a":', "[{", "<function=a>"])
def test_many_brackets_are_read_quickly(part: str) -> None:
    """An answer of nothing but openings, which has no call that is right, is scored without an error."""
    record = {"prediction": part * 10_000, "references": [json.dumps(RIGHT)]}
    assert TASKS["definition"].scores({**record, "tools": TOOLS})[MAIN_METRIC] == 0


@KINDS
def test_the_baselines_know_the_prompts(kind: str) -> None:
    """The baseline models recognise a prompt among those of all benchmarks: one answers with a call, the other says that there is none."""
    task = TASKS[kind]
    (example,) = draw(task)
    recognition = recognise(prompt_of(task, example))
    assert recognition is not None
    assert recognition.baseline.constant == NO_CALL
    assert len(read_calls(answer(prompt_of(task, example)))) == 1
