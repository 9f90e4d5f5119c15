"""Tests of the list of public names: it has all of them, and none vanishes without a decision."""

from __future__ import annotations

import runpy
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
LIST = ROOT / "docs/public-interface.txt"
SCRIPT = ROOT / "docs/make_interface.py"


def recorded() -> list[str]:
    return LIST.read_text(encoding="utf-8").splitlines()


def test_the_list_is_the_interface() -> None:
    """The recorded list has exactly the public names of the code; `make reference` rewrites it."""
    names = runpy.run_path(str(SCRIPT))["list_names"]()
    gone = sorted(set(recorded()) - set(names))
    new = sorted(set(names) - set(recorded()))
    assert (gone, new) == ([], []), "run: make reference"
    assert recorded() == sorted(set(recorded()))


def test_the_list_has_every_kind() -> None:
    """The list has names of each kind that the page on stability describes, and the page describes no other kind."""
    page = (ROOT / "docs/stability.md").read_text(encoding="utf-8")
    described = {
        kind.strip(" `")
        for line in page.splitlines()
        if line.startswith("| `")
        for kind in line.split("|")[1].split(",")
    }
    assert {name.split()[0] for name in recorded()} == described


def test_known_names_are_public() -> None:
    """Names of each kind that users rely on are in the list."""
    assert {
        "command helm-longctx run --model-url",
        "command helm-longctx run --batch",
        "command helm-longctx show RUN",
        "exit-status 2",
        "configuration limits.max_cost",
        "configuration models[].url",
        "entry helmet_recall task=json_kv",
        "entry * length",
        "entry oneruler language=de",
        "class helm_longctx.models.apis.OpenAIClient base_url",
        "class helm_longctx.models.apis.OpenAIClient api_key_env",
        "class helm_longctx.runner.LongContextRunner",
        "class helm_longctx.benchmarks.helmet.judge.RubricAnnotator",
        "file RUN/scenario_state.json",
        "variable HELM_LONGCTX_DATA",
        "python helm_longctx.tasks.Task name",
        "entry-point helm_longctx.benchmarks",
    } <= set(recorded())


def test_a_removed_name_stops_the_command(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The script does not remove a name from the list, and prints it, unless the removal is asked for."""
    names = tmp_path / "public-interface.txt"
    names.write_text("command helm-longctx run --gone\n")
    main = runpy.run_path(str(SCRIPT))["main"]
    main.__globals__.update(LIST=names, list_names=recorded)
    monkeypatch.setattr(sys, "argv", ["make_interface.py"])
    with pytest.raises(SystemExit, match=r"(?m)^  command helm-longctx run --gone$"):
        main()
    assert names.read_text() == "command helm-longctx run --gone\n"
    monkeypatch.setattr(sys, "argv", ["make_interface.py", "--remove"])
    main()
    assert names.read_text(encoding="utf-8").splitlines() == recorded()
