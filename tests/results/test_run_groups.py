"""Recipes are compared by several training runs of each, over runs and questions."""

from __future__ import annotations

import json
import random
from pathlib import Path

import pytest

from helm_longctx.apps.checkpoints.sections import checkpoint_sections
from helm_longctx.apps.comparison.sections import comparison_sections
from helm_longctx.errors import InputError
from helm_longctx.results.boards import read_suite
from helm_longctx.results.run_groups import (
    GROUPS_FILE,
    UNKNOWN_NOISE,
    GroupTable,
    compare_groups,
    find_groups,
    parse_groups,
    read_groups,
    write_groups,
)
from helm_longctx.tasks.outputs import Output
from helm_longctx.tasks.registry import BENCHMARKS
from tests.support.commands import Command
from tests.support.outputs import write

ENTRY = "helmet_recall:task=json_kv,length=64k"
QUESTIONS = 100


def write_run(
    suite: Path, model: str, share: float, seed: int, failed: int = 0
) -> None:
    """Write a run in which a share of the answers is right, and the wrong answers come first among those that fail."""
    rng = random.Random(seed)
    answers = []
    for number in range(QUESTIONS):
        text: str | None = "value" if rng.random() < share else "other"
        if text == "other" and failed:
            text = None
            failed -= 1
        answers.append(
            Output(f"q{number}", text, ["value"], error="" if text else "refused")
        )
    write(suite, ENTRY, answers, model=model)


def compare(suite: Path, *groups: str, run_noise: str | None = None) -> GroupTable:
    """Compare groups of the suite's models."""
    boards = [
        board for board in read_suite(suite, BENCHMARKS).boards if board.own_models
    ]
    models = list(boards[0].own_models)
    run_groups = find_groups(parse_groups(groups), models)
    return compare_groups(boards, run_groups, run_noise=run_noise)


@pytest.fixture(scope="module")
def suite(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return runs of four recipes: two that are equal but noisy, a better one, and one with a single run."""
    folder = tmp_path_factory.mktemp("groups") / "benchmark_output/runs/seeds"
    shares = {
        "ckpt/a": (0.5, 0.7, 0.6),
        "ckpt/b": (0.65, 0.45, 0.6),
        "ckpt/c": (0.97, 0.95, 0.96),
        "ckpt/d": (0.85,),
    }
    for recipe, of_runs in shares.items():
        for number, share in enumerate(of_runs):
            write_run(folder, f"{recipe}-seed{number}", share, hash_of(recipe, number))
    return folder


def hash_of(recipe: str, number: int) -> int:
    return sum(map(ord, recipe)) * 10 + number


def test_equal_recipes_are_not_told_apart(suite: Path) -> None:
    """Runs of one recipe differ by ten points, so two equal recipes are not told apart."""
    table = compare(suite, "a=ckpt/a-*", "b=ckpt/b-*")
    (pairing,) = table.pairings
    assert pairing.verdict == "cannot tell"
    assert pairing.answered.low < 0 < pairing.answered.high
    assert pairing.answered.run_share > 0.5
    assert table.noise is not None
    assert 0.04 < table.noise.deviation < 0.2


def test_a_better_recipe_is_found(suite: Path) -> None:
    """A recipe whose worst run is far above the other's best one is better."""
    (pairing,) = compare(suite, "c=ckpt/c-*", "a=ckpt/a-*").pairings
    assert pairing.verdict == "better"
    assert pairing.answered.low > 0
    (pairing,) = compare(suite, "a=ckpt/a-*", "c=ckpt/c-*").pairings
    assert pairing.verdict == "worse"


def test_one_run_decides_nothing(suite: Path) -> None:
    """With one run of a recipe the noise is unknown, whatever the difference; an assumption decides."""
    (pairing,) = compare(suite, "d=ckpt/d-*", "one=ckpt/a-seed0").pairings
    assert pairing.answered.difference > 0.2
    assert pairing.verdict == UNKNOWN_NOISE
    (pairing,) = compare(suite, "d=ckpt/d-*", "a=ckpt/a-*").pairings
    assert pairing.verdict == UNKNOWN_NOISE
    groups = ("d=ckpt/d-*", "one=ckpt/a-seed0")
    (pairing,) = compare(suite, *groups, run_noise="2").pairings
    assert pairing.verdict == "better"
    (pairing,) = compare(suite, *groups, run_noise="25").pairings
    assert pairing.verdict == "cannot tell"
    assert pairing.answered.needed_runs is not None
    table = compare(suite, "d=ckpt/d-*", "c=ckpt/c-*", run_noise="c")
    assert table.source == "assumed to be that of c"


@pytest.mark.parametrize(
    ("one", "other"), [(0.3978, 0.6058), (0.5616, 0.6058), (0.4256, 0.6058)]
)
def test_withdrawn_findings_are_not_made(
    tmp_path: Path, one: float, other: float
) -> None:
    """Scores of single runs that allenai/open-instruct#1859 took for findings and withdrew decide nothing."""
    for name, score in (("one", one), ("other", other)):
        answers = []
        for number in range(1300):
            text = "value" if number < round(1300 * score) else "other"
            answers.append(Output(f"q{number}", text, ["value"]))
        write(tmp_path, ENTRY, answers, model=f"kda/{name}")
    (pairing,) = compare(tmp_path, "one=kda/one", "other=kda/other").pairings
    assert pairing.verdict == UNKNOWN_NOISE


@pytest.fixture(scope="module")
def trainings(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return two steps of three trainings of two recipes: equal at the first step, far apart at the second one."""
    folder = tmp_path_factory.mktemp("steps") / "benchmark_output/runs/steps"
    for recipe, last in (("a", 0.95), ("b", 0.3)):
        for seed in range(3):
            for step, share in ((100, 0.2), (200, last)):
                model = f"ckpt/{recipe}-seed{seed}/step-{step}"
                write_run(folder, model, share, hash_of(model, seed))
    # One training has been trained further.
    write_run(folder, "ckpt/a-seed0/step-300", 0.9, 1)
    return folder


RECIPES = ("--group", "a=ckpt/a-*", "--group", "b=ckpt/b-*")


def test_recipes_over_their_steps(
    trainings: Path, command: Command, tmp_path: Path
) -> None:
    """`checkpoints --group` compares recipes at each step that all their trainings have, and adjusts for all steps."""
    target = tmp_path / "steps.json"
    output = ("--suite", "steps", "--output-path", str(trainings.parents[1]))
    assert command("checkpoints", *RECIPES, *output, "--json", str(target)) == 0, (
        command.err
    )
    assert "recipes over steps" in command.out
    assert "left out: 300" in command.out
    rows = json.loads(target.read_text())["recipes"]
    assert [(row["step"], row["verdict"]) for row in rows] == [
        (100, "cannot tell"),
        (200, "better"),
    ]
    assert [row["runs"] for row in rows] == [[3, 3], [3, 3]]
    assert rows[1]["adjusted_p"] == 2 * rows[1]["p"]
    one_each = ("--group", "a=ckpt/a-seed1/*", "--group", "b=ckpt/b-seed1/*")
    assert command("checkpoints", *one_each, *output) == 0, command.err
    assert command.out.count("unknown") >= 2
    assert command("checkpoints", *one_each, "--run-noise", "3", *output) == 0
    assert "better" in command.out


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        (("--run-noise", "3"), "needs groups"),
        (("--group", "a=ckpt/a-*"), "give at least two"),
        (("--group", "a=ckpt/a-*/step-100", "--group", "b=ckpt/b-*"), "all steps"),
        (("--group", "a=ckpt/c-*", "--group", "b=ckpt/b-*"), "no model of the suite"),
    ],
)
def test_recipes_that_cannot_be_compared(
    trainings: Path, command: Command, arguments: tuple[str, ...], expected: str
) -> None:
    """A group without trainings, with some steps of one, or alone ends in one line."""
    output = ("--suite", "steps", "--output-path", str(trainings.parents[1]))
    assert command("checkpoints", *arguments, *output) == 2
    assert expected in command.err
    assert len(command.err.strip().splitlines()) == 1


def test_steps_are_no_runs(trainings: Path, command: Command) -> None:
    """`compare --group` refuses several steps of one training as runs of a recipe, and takes one step of each."""
    output = ("--suite", "steps", "--output-path", str(trainings.parents[1]))
    assert command("compare", *RECIPES, *output) == 2
    assert "steps of one training, not two runs" in command.err
    one_step = ("--group", "a=ckpt/a-*/step-200", "--group", "b=ckpt/b-*/step-200")
    assert command("compare", *one_step, *output) == 0, command.err
    assert "better" in command.out


def test_recipes_over_steps_in_the_report(trainings: Path) -> None:
    """The groups of a configuration stand on the report's page of checkpoints, and steps are not taken for runs."""
    write_groups(trainings, {"a": ["ckpt/a-*"], "b": ["ckpt/b-*"]})
    try:
        board = next(
            board
            for board in read_suite(trainings, BENCHMARKS).boards
            if board.own_models
        )
        titles = [section.title for section in checkpoint_sections(board)]
        assert titles.count("Recipes over their steps") == 1
        blocks = []
        for section in comparison_sections(board):
            blocks += [block.name for block in section.blocks]
        assert not any(name.endswith("-pairs") for name in blocks)
    finally:
        (trainings / GROUPS_FILE).unlink()


def test_failures_do_not_decide(tmp_path: Path) -> None:
    """A recipe whose wrong answers fail is not better than an equal one."""
    for number in range(3):
        write_run(tmp_path, f"x/a-{number}", 0.6, number, failed=35)
        write_run(tmp_path, f"x/b-{number}", 0.6, number + 50)
    table = compare(tmp_path, "a=x/a-*", "b=x/b-*")
    (pairing,) = table.pairings
    assert table.unanswered > 30
    assert len(pairing.with_failures) == 2
    assert pairing.verdict not in ("better", "worse")


@pytest.mark.parametrize(
    ("groups", "message"),
    [
        (("a",), "NAME=PATTERN"),
        (("a=x*",), "no model of the suite matches 'x\\*'"),
        (("a=ckpt/a-*",), "give at least two"),
        (("a=ckpt/a-*", "b=ckpt/*"), "put it into one"),
        (("a=ckpt/a-*", "a=ckpt/b-*"), "comes twice"),
    ],
)
def test_groups_that_cannot_be_used(
    suite: Path, groups: tuple[str, ...], message: str
) -> None:
    """A group that matches no model, has another's model or stands alone ends in one line."""
    with pytest.raises(InputError, match=message) as error:
        compare(suite, *groups)
    assert "\n" not in str(error.value)


@pytest.mark.parametrize("noise", ["x", "-1", "101", "nan"])
def test_noise_that_cannot_be_used(suite: Path, noise: str) -> None:
    """The noise is a number of points, or a group with several runs."""
    with pytest.raises(InputError, match="run-noise"):
        compare(suite, "a=ckpt/a-*", "b=ckpt/b-*", run_noise=noise)
    with pytest.raises(InputError, match="has one run"):
        compare(suite, "a=ckpt/a-*", "d=ckpt/d-*", run_noise="d")


def test_the_command(suite: Path, command: Command, tmp_path: Path) -> None:
    """`compare --group` prints recipes and differences, and writes them for programs."""
    target = tmp_path / "groups.json"
    options = (
        "--group",
        "a=ckpt/a-*",
        "--group",
        "b=ckpt/b-*",
        "--group",
        "c=ckpt/c-*",
    )
    output = ("--suite", "seeds", "--output-path", str(suite.parents[1]))
    assert command("compare", *options, *output, "--json", str(target)) == 0, (
        command.err
    )
    assert "Runs of one recipe differ by" in command.out
    assert "cannot tell" in command.out
    (content,) = json.loads(target.read_text()).values()
    assert [group["name"] for group in content["groups"]] == ["a", "b", "c"]
    assert [pair["verdict"] for pair in content["pairings"]] == [
        "cannot tell",
        "worse",
        "worse",
    ]
    assert command("compare", "ckpt/a-seed0", *options, *output) == 2
    assert "leave out models" in command.err
    assert command("compare", "--run-noise", "3", *output) == 2
    assert "needs groups" in command.err


def test_groups_of_a_configuration(suite: Path, command: Command) -> None:
    """The groups of a configuration are read by `compare` without models, and stand in the report."""
    write_groups(suite, {"a": ["ckpt/a-*"], "c": ["ckpt/c-*"]})
    try:
        output = ("--suite", "seeds", "--output-path", str(suite.parents[1]))
        assert command("compare", *output) == 0, command.err
        assert "Differences of recipes" in command.out
        board = next(
            board for board in read_suite(suite, BENCHMARKS).boards if board.own_models
        )
        sections = comparison_sections(board)
        blocks = [block.name for section in sections for block in section.blocks]
        assert any(name.endswith("-pairs") for name in blocks)
    finally:
        (suite / GROUPS_FILE).unlink()


def test_a_damaged_file_of_groups(tmp_path: Path) -> None:
    """A file of groups that cannot be read is named."""
    (tmp_path / GROUPS_FILE).write_text("[")
    with pytest.raises(InputError, match=f"{GROUPS_FILE} is damaged"):
        read_groups(tmp_path)
