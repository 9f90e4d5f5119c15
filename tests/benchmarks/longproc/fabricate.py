"""Fabricate LongProc's files and odd outputs, which are the same on every machine."""

from __future__ import annotations

import json
import random
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path
from typing import Any

import yaml

from helm_longctx.benchmarks.longproc.data import FOLDER, LEVELS, TASKS, problems
from helm_longctx.benchmarks.longproc.travel import Trip, format_plan
from helm_longctx.benchmarks.longproc.travel import _Search as TravelSearch
from tests.support.fabricate_words import words

ROWS = 4
PLACES = {
    "html_to_tsv": "{html_str} {task_topic} {task_description}{filtering_instruction} ```tsv\n{tsv_header}\n{{rows}}\n```",
    "pseudo_to_code": "Write\n```cpp\n#include <x>\n```\n{pseudocode}\n[CODE]:",
    "path_traversal": "<Route>\nFrom <A>\n</Route>\n{city_context}\nFrom {src_city} to {dst_city}. ",
    "tom_tracking": "{{Leon location: None}}\n{story}\n{question}",
    "countdown": "Rules.\n{demonstration}\n\nNumbers: {nums}\nTarget: {target}",
    "travel_planning": "Rules.\n{demonstration}\n\n{{{{kept}}}} {problem}",
}
CITIES = ("Oslo", "Riga", "Bonn", "Turin", "Lyon", "Split", "Porto", "Ghent")
RECORD = {
    "item": {
        "reference_output": "- a\n- b", "nums": [1, 2, 3, 4], "target": 10,
        "ground_truth_cities": "Oslo**Riga", "ground_truth_durations": "2**3",
    }
}  # fmt: skip


def build_longproc(root: Path) -> Path:
    """Write all six tasks at all their levels as in the repository's folder `data`, and return the folder."""
    root = root / FOLDER
    for task, files in TASKS.items():
        folder = root / task
        folder.mkdir(parents=True)
        (folder / "prompts.yaml").write_text(
            yaml.safe_dump({"USER_PROMPT": PLACES[task]}), encoding="utf-8"
        )
        for level in files.levels:
            rng = random.Random(f"{task} {level}")
            rows = [
                MAKERS[task](rng, folder, f"{level}_{number}", LEVELS[level] // 512)
                for number in range(ROWS)
            ]
            _write(folder / files.file.format(task=task, level=level), rows)
    rng = random.Random(5)
    folder = root / "travel_planning"
    _write(
        folder / "travel_planning_icl_examples.json",
        [_trip(rng, count) for count in (3, 4)],
    )
    tokens = (0, 100, 2047, 2048, 3000, 4095, 4096, 6000.5, 8191, 8192)
    trips = [
        {**_trip(rng, 3 + number % 4), "estimated_output_tokens": n}
        for number, n in enumerate(tokens)
    ]
    _write(folder / "travel_planning_all.json", trips)
    return root


def _write(path: Path, rows: list[dict[str, Any]]) -> None:
    path.write_text(json.dumps(rows, indent=1), encoding="utf-8")


def _table(rng: random.Random, folder: Path, name: str, size: int) -> dict[str, Any]:
    page = folder / "webpage" / f"{name}.html"
    page.parent.mkdir(exist_ok=True)
    page.write_bytes(f"<ul>\r\n<li>{{x}} é {words(rng, 9)}\r<li>\n\n</ul>\n".encode())
    lines = [f"{words(rng, 2)}\tN/A\t€ {rng.randrange(99)},00" for _ in range(2 + size)]
    return {
        "task_id": name, "website_id": "W1", "html_path": f"webpage/{name}.html", "task_topic": words(rng, 2),
        "task_description": "(1) The name; (2) {price}", "gt": "name\tcolour\tprice\n" + "\n".join(lines),
        "tsv_header": "name\tcolour\tprice", "filtering_instruction": rng.choice(["", " Only {cheap} ones."]),
    }  # fmt: skip


def _code(rng: random.Random, folder: Path, name: str, size: int) -> dict[str, Any]:
    lines = [f"    int v{number} = {rng.randrange(9)};" for number in range(size)]
    return {
        "problem_id": name, "pseudocode_lines": [f"{words(rng, 3)} {{}}" for _ in lines],
        "code_lines": ["int main() {", *lines, "}"], "testcases": [[["1 2"], ["3"]]],
    }  # fmt: skip


def _route(rng: random.Random, folder: Path, name: str, size: int) -> dict[str, Any]:
    cities = [f"{words(rng, 1).title()}{number}" for number in range(3 + size)]
    steps = [(a, rng.choice(["bus", "ferry"]), b) for a, b in pairwise(cities)]
    return {
        "context_nl": "\n".join(
            f"You can go from {a} to {b} by {by}." for a, by, b in sorted(steps)
        ),
        "question_repr": [cities[0], cities[-1]],
        "answer_nl": "\n".join(f"From {a}, take a {by} to {b}." for a, by, b in steps),
    }


def _story(rng: random.Random, folder: Path, name: str, size: int) -> dict[str, Any]:
    steps = [
        f"- Step {n}: (no change) {{Ann sees pen: {n % 2 == 0}; Ann's belief: the {words(rng, 1)}}}"
        for n in range(size)
    ]
    return {
        "story_components": "Agents: [Ann].", "story": f"Step 0: {words(rng, 6)} {{}}.", "question": "Where is the pen?",
        "solution": "\n".join(["Ann's belief on the pen:", *steps, "Final Answer: the desk"]),
    }  # fmt: skip


def _equations(
    rng: random.Random, folder: Path, name: str, size: int
) -> dict[str, Any]:
    numbers = [rng.randint(1, 50) for _ in range(4)]
    if rng.random() < 0.4:
        numbers[1] = numbers[0]  # equal numbers allow a division by 0
    a, b, c, d = rng.sample(numbers, 4)
    return {
        "nums": numbers,
        "target": abs(
            rng.choice([a + b * c - d, a * b + c + d, a + b + c + d, a - b - c + d])
        ),
    }


def _trip(rng: random.Random, count: int) -> dict[str, Any]:
    """Return a trip that has a plan, which the search finds."""
    cities = rng.sample(CITIES, count)
    day = 1
    constraints = []
    for number, city in enumerate(cities):
        days = rng.randint(2, 5)
        entry = [{"type": "duration", "city": city, "num_days": days}]
        if number % 3 == 1 or (count == 6 and number == 5):
            entry.append(
                {
                    "type": "fixed",
                    "city": city,
                    "start_day": day,
                    "end_day": day + days - 1,
                }
            )
        constraints.append(entry)
        day += days - 1
    rng.shuffle(constraints)
    flights = list(pairwise(cities)) + [
        tuple(rng.sample(cities, 2)) for _ in range(count)
    ]
    rng.shuffle(flights)
    row: dict[str, Any] = {
        "id": f"trip_{rng.randrange(999)}", "num_cities": count, "total_days": day,
        "constraints": [constraint for entry in constraints for constraint in entry],
        "connected_cities": [list(pair) for pair in flights],
        "disambig_question_text": f"Visit {count} European cities for {day} days {{{{really}}}}.",
    }  # fmt: skip
    trip = Trip.of(row)
    plan = TravelSearch(trip).arrange(1, [], trip.free)
    assert plan
    return row | {
        "ground_truth_plan": f"Here is the trip plan for {count} European cities for {day} days:\n\n{format_plan(plan)}\n",
        "ground_truth_cities": "**".join(stop.city for stop in plan),
        "ground_truth_durations": "**".join(str(stop.days) for stop in plan),
    }


def _no_trip(rng: random.Random, folder: Path, name: str, size: int) -> dict[str, Any]:
    return {}


MAKERS = {
    "html_to_tsv": _table,
    "pseudo_to_code": _code,
    "path_traversal": _route,
    "tom_tracking": _story,
    "countdown": _equations,
    "travel_planning": _no_trip,
}


def cases(root: Path) -> Iterator[tuple[str, str, int, str]]:
    """Return the task, the level, the number of the problem and an output for each case."""
    for task, files in TASKS.items():
        for level in files.levels:
            rng = random.Random(f"outputs {task} {level}")
            generated = list(problems(task, level, root))
            for problem in generated:
                other = generated[problem.number - 1].reference
                for output in [
                    *outputs(rng, problem.reference, other),
                    *SPECIAL.get(task, ()),
                ]:
                    yield task, level, problem.number, output


def outputs(rng: random.Random, reference: str, other: str) -> Iterator[str]:
    """Return outputs that are right, nearly right and odd."""
    yield from (
        "",
        " ",
        "\n",
        "I cannot do that.",
        other,
        reference,
        f" {reference}\n",
        reference.upper(),
        "文" * 50,
    )
    yield from (
        reference[: len(reference) // 2],
        reference[len(reference) // 3 :],
        f"Sure!\n{reference}",
        "\x00\t{}",
    )
    yield f"{reference}\n{other}"
    yield reference.replace("\n", "\r\n")
    yield reference.replace("\n", "\n\n")
    yield reference.replace(" ", "  ")
    yield "\n".join(f"  {line}" for line in reference.split("\n"))
    yield reference.split("</")[0]
    for _ in range(6):
        yield _mutated(rng, reference)
    for text in (reference, other, _mutated(rng, reference), _mutated(rng, reference)):
        yield f"<Route>\n{text}\n</Route>"
        yield f"```tsv\n{text}\n```"
        yield f"```tsv\n{text}"
        yield f"```c++\n{text}```\nDone."
    yield f"</Route><Route>{reference}"
    yield f"```cpp{reference}"


def _mutated(rng: random.Random, text: str) -> str:
    lines = text.split("\n")
    position = rng.randrange(len(lines))
    line = lines[position]
    change = rng.randrange(6)
    if change == 0:
        del lines[position]
    elif change == 1:
        lines.insert(position, rng.choice(lines))
    elif change == 2:
        lines[position] = line[: len(line) // 2]
    elif change == 3:
        lines[position] = line.replace("1", "2").replace("a", "e")
    elif change == 4:
        lines = lines[: position + 1]
    else:
        rng.shuffle(lines)
    return "\n".join(lines)


SPECIAL = {
    "html_to_tsv": [
        "name\tcolour\tprice", "name\tcolour\tprice\nx", "name\tname\tprice\na\tb\tc", "a\tb\nc\td", '"name\tcolour',
        "name\tcolour\tprice\na\tb\tc\nx\ny\tz\nd\te\tf", "name\tcolour\tprice\n\n\na\tb\tc", "a\rb\tc\td\ne\tf\tg",
        'name\tcolour\tprice\n"a\nb"\tc\td\ne\tf\tg', "```tsv x ```tsv name\tcolour\tprice\na\tb\tc", "x" * 140_000,
        "name\tcolour\tprice\n\x00\tb\tc\nd\te\tf",
    ],
    "countdown": [
        f"<Solution>\n{lines}\n</Solution>"
        for lines in ("1 + 2 = 3\n3 + 3 = 6\n6 - 1 = 5", "1 + 2 = 3", "=\n=\n=", "1 = 1\n2 = 2\n3 = 3", "1 + 2 = x\n\n",
                      "1 + 2 + 3 = 6\n1 ** 2 = 1\n7 // 2 = 3", "1 + 2 = 3 = 3\n1 + 1 = 2\n1 + 1 = 2")
    ]
    + ["# Search Procedure", "# Search Procedure\nInitial", "<Solution></Solution>", "</Solution>", "</Solution><Solution>"],
    "travel_planning": [
        f"<Plan>\n{plan}\n</Plan>"
        for plan in ("", "Day 1-3", "Day 3 from Oslo to Riga", "**Day 1-3:** x\n**Day 3:** Fly from Oslo to Riga.\n4-9",
                     "European cities for 3 days\nDay 1-3 Day 3 from Oslo to Riga\nDay 3 from Riga to Bonn",
                     "Day 1 Day 2 from A to B from C to D\n1-2-3-4", "Day 2 from Oslo to Riga, from Riga to Bonn\n2-5")
    ]
    + ["<Solving Procedure>", "<Solving Procedure></Solving Procedure><Solving Procedure>x", "<Plan>", "</Plan><Plan>"],
    "tom_tracking": ["-", "- \n-- x\n -y", "- Step 0", "\u2028- Step 0: x\x0b- y", "-the a an", "\n\n   - Step 0: (no change)"],
}  # fmt: skip


_SUM = "int main() { int a, b; cin >> a >> b; cout << a + b << endl; }"
_SUMS = [[["1 2"], ["3"]], [["-4", "4"], ["0"]], [["7 7"], ["14"]]]
_ECHO = "int main() { string line; while (getline(cin, line)) cout << line << '\\n'; }"


def _main(body: str) -> str:
    return f"int main() {{ {body} }}"


def _fence(code: str, name: str = "cpp") -> str:
    return f"```{name}\n{code}\n```"


PROGRAMS: dict[str, tuple[str, list[list[list[str]]]]] = {
    "right": (_fence(_SUM), _SUMS),
    "right, in c++, with words around": (f"Sure:\n{_fence(_SUM, 'c++')}\nIt adds.", _SUMS),
    "right, in another fence": (_fence(_SUM, "C++"), _SUMS),
    "not closed": (_fence(_SUM).removesuffix("```"), _SUMS),
    "two fences": (f"{_fence(_SUM)}\n{_fence(_SUM)}", _SUMS),
    "no code": (_fence(""), _SUMS),
    "does not compile": (_fence(_SUM.replace(";", "")), _SUMS),
    "newer than C++11": (_fence(_main("auto f = [](auto x) { return x; }; cout << f(3) << endl;")), _SUMS[:1]),
    "wrong at the second": (_fence(_SUM.replace("a + b", "abs(a) + b")), _SUMS),
    "no newline at the end": (_fence(_SUM.replace("<< endl", "")), _SUMS),
    "right, then a crash": (_fence(_main("cout << 3 << endl; abort();")), _SUMS[:1]),
    "right, with a status": (_fence(_main("cout << 3 << endl; return 7;")), _SUMS[:1]),
    "right, with remarks": (_fence(_main('cerr << "h\u00e9"; cout << 3 << endl;')), _SUMS[:1]),
    "right, with remarks that are no text": (_fence(_main('cerr << "\\xff"; cout << 3 << endl;')), _SUMS[:1]),
    "output that is no text": (_fence(_main('cout << "\\xff\\n";')), [[["1"], ["\u00ff"]]]),
    "input that is not read": (_fence(_main("cout << 3 << endl;")), [[["1" * 200_000], ["3"]]]),
    "much input and output": (_fence(_ECHO), [[["1" * 200_000], ["1" * 200_000]]]),
    "an empty test": (_fence(_ECHO), [[[], []]]),
    "no tests": (_fence(_SUM), []),
    "wrong after the tenth": (_fence(_SUM), [_SUMS[0]] * 10 + [[["1 2"], ["4"]]]),
    "wrong at the tenth": (_fence(_SUM), [_SUMS[0]] * 9 + [[["1 2"], ["4"]]]),
    "too deep": (_fence("int f(int n) { return n ? f(n + 1) + n : 0; }\nint main() { cout << f(1) << endl; }"), _SUMS),
    "300 MB": (_fence(_main("vector<char> v(300000000, 1); cout << (int)v[7] + 2 << endl;")), _SUMS[:1]),
    "endless at the second": (_fence(_SUM.replace("cout", "while (a < 0); cout")), _SUMS),
    "right, then endless": (_fence(_main("cout << 3 << endl; while (true);")), _SUMS[:1]),
    "scratch file": (
        _fence(_main('ofstream("x") << 3; int a; ifstream("x") >> a; cout << a << endl;')), _SUMS[:1],
    ),
}  # fmt: skip
"""Outputs with programs and the problems' test cases, by a name for the program's property."""
