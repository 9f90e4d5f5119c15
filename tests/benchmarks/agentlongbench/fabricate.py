"""Fabricates AgentLongBench's files and answers, the same on every machine."""

from __future__ import annotations

import json
import random
from pathlib import Path
from typing import Any

from helm_longctx.benchmarks.agentlongbench.tasks import FOLDERS, KINDS, SETTINGS

_ROWS = 2
_NAMES = ("Mr. Mime", "Farfetch'd", "Porygon-Z", "Type: Null", "Ho-Oh", "Abra")
_MASKS = ("0639", "0162", "item_84", "Item 7", "0104", "x-1")


def build_agentlongbench(root: Path) -> Path:
    """Write the shortest file of each task of each kind of log."""
    for setting in SETTINGS:
        for name in KINDS:
            _write_rows(root, setting, name, min(FOLDERS))
    return root


def _write_rows(root: Path, setting: str, name: str, length: int) -> None:
    folder = root / "agentlongbench" / setting / FOLDERS[length] / KINDS[name].folder
    folder.mkdir(parents=True, exist_ok=True)
    lines = []
    for row in make_rows(setting, name):
        lines.append(json.dumps(row, ensure_ascii=False) + "\n")
    (folder / f"{name}.jsonl").write_text("".join(lines), encoding="utf-8")


def make_rows(setting: str, name: str) -> list[dict[str, Any]]:
    """Return the rows of a file."""
    rng = random.Random(f"{setting} {name}")
    return [_make_row(rng, setting, name, number) for number in range(_ROWS)]


def _make_row(
    rng: random.Random, setting: str, name: str, number: int
) -> dict[str, Any]:
    row: dict[str, Any] = {
        "id": f"{number}_r2_{name}",
        "sample_id": number,
        "question_type": KINDS[name].official,
        "messages": make_messages(rng, setting),
        "question": f"How often is {rng.choice(_list_names(setting))} in round 2?",
        "answer": make_answer(rng, setting, name),
    }
    if name in ("count_frequency_tool", "count_correctness_env"):
        row["round"] = 2
    if name == "find_duplicates_tool":
        row |= {"i_round": 1, "j_round": 2}
    return row


def _list_names(setting: str) -> tuple[str, ...]:
    return _MASKS if setting.startswith("kf") else _NAMES


def make_messages(rng: random.Random, setting: str) -> list[dict[str, Any]]:
    """Return a log of three rounds: feedback, a call, its result and a guess."""
    names = _list_names(setting)
    messages: list[dict[str, Any]] = [{"role": "system", "content": "You play."}]
    for number in range(1, 4):
        guess = rng.choice(names)
        feedback = (
            f"Round {number}: Guess {guess}\nSections:\n  - attr_2: 512 (correct)"
        )
        messages.append({"role": "user", "content": feedback})
        arguments = json.dumps({"section": "é", "value": number}, ensure_ascii=False)
        messages.append(
            {
                "role": "assistant",
                "content": None if number == 1 else f"I ask {number}.",
                "tool_calls": [
                    {
                        "id": f"call_{number}",
                        "type": "function",
                        "function": {"name": "query", "arguments": arguments},
                    }
                ],
            }
        )
        facts: dict[str, Any] = {"intersection": rng.sample(names, 4)}
        if setting.endswith("v"):
            section = {"section": "attr_2", "candidates": rng.sample(names, 5)}
            facts = {"per_section": [section, section]}
        messages.append(
            {
                "role": "tool",
                "tool_call_id": f"call_{number}",
                "name": "query",
                "content": json.dumps(facts),
            }
        )
        messages.append({"role": "assistant", "content": f"<answer>{guess}</answer>"})
    return messages


def make_answer(rng: random.Random, setting: str, name: str) -> Any:
    """Return a right answer: of the usual kind, or of another one that the official code reads."""
    names = _list_names(setting)
    form = KINDS[name].form
    if form == "number":
        return rng.choice([rng.randint(0, 30), 3.7, "12 times", True])
    if form == "truth":
        return rng.choice([True, False, "Yes", "false", 0, 2])
    if form == "pair":
        return rng.choice([rng.sample(names, 2), "[0639, Abra]", "Abra and 0162"])
    if setting.endswith("c"):
        return rng.choice(names)
    return rng.choice([rng.sample(names, 3), "0639, 0162 Abra", [*names, "Mew"]])


UNREADABLE_ANSWERS = ("", "nothing", None)
"""Right answers that the official code does not count, for some kinds of questions."""

_PARTS = (
    "3",
    "12",
    "1,024",
    "-3",
    "3.9",
    "٣",
    "yes",
    "No",
    "not true",
    "it appears",
    "both",
    "and",
    "1. ",
    ";",
    "\n",
    "|",
    ", ",
    "Mew",
    "0",
    "9007199254740993",
)


def make_reply(rng: random.Random, answer: Any) -> str:
    """Return an answer of a model: a right one in several forms, a made one, or one in odd tags."""
    given = answer if isinstance(answer, list) else [answer]
    texts = [str(value) for value in given]
    rng.shuffle(texts)
    made = rng.choices([*_PARTS, *_NAMES, *_MASKS], k=rng.randint(0, 4))
    inner = rng.choice(
        [
            " and ".join(str(value) for value in given),
            ", ".join(texts),
            str(texts),
            str(given),
            json.dumps(texts[:1]),
            "\n".join(f"{number}. {text}" for number, text in enumerate(texts)),
            "".join(made),
            " ".join(made),
            str(made),
            f"[{', '.join(made)}]",
            "",
            " [] ",
            "['a', '', 0x1F, None]",
            "[1], [2]",
        ]
    )
    return rng.choice(
        [
            f"<answer>{inner}</answer>",
            f"<answer>{inner}</answer>",
            f"<answer>{inner}</answer>",
            f"So it is <ANSWER>\n{inner} </Answer>.",
            f"<answer>5</answer> or <answer>{inner}</answer>",
            f"<answer><answer>{inner}</answer></answer>",
            f"<an\u017fwer>{inner}</answer>",
            f"<answer>{inner}",
            inner,
        ]
    )


def make_records(count: int) -> list[dict[str, Any]]:
    """Return records of answers to questions of all kinds on all kinds of logs."""
    records = []
    for setting in SETTINGS:
        for name in KINDS:
            rng = random.Random(f"records {setting} {name}")
            for _ in range(count):
                answer = make_answer(rng, setting, name)
                reply = make_reply(rng, answer)
                if rng.random() < 0.02:
                    answer = rng.choice(UNREADABLE_ANSWERS)
                records.append(
                    {
                        "setting": setting,
                        "kind": name,
                        "answer": answer,
                        "prediction": reply,
                    }
                )
    return records


RECORD = {"references": ["3"], "answer": 3, "prediction": "<answer>3</answer>"}
