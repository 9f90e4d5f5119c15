"""A suite's scores for other programs."""

from __future__ import annotations

import copy
import csv
import json
import shutil
from collections.abc import Callable
from itertools import chain
from pathlib import Path

import pytest

from helm_longctx.benchmarks import BENCHMARKS
from helm_longctx.benchmarks.helmet.tasks import HELMET
from helm_longctx.errors import InputError
from helm_longctx.report.answers import answers
from helm_longctx.report.export import Average, Score, averages, scores, write_csv
from helm_longctx.report.plot import curves
from helm_longctx.report.reference import write_reference
from tests.fabricate_runs import long_prompts, write_run

ENTRY = "helmet_recall:task=json_kv,length=8k,num_samples=4,model=longctx/null"


def score(task: str, length: str, value: float, metric: str = "longctx_score") -> Score:
    return Score("run", "m", "lv_eval", task, length, "full", metric, value, 9, "")


def test_averages() -> None:
    """Tasks at each length and lengths of each task, without weights; how many they are is told."""
    rows = [score("a", "16k", 0.2), score("b", "16k", 0.6), score("a", "32k", 0.3), score("a", "32k", 1, "f1")]
    assert {(row.task, row.length): row[5:8] for row in averages(rows, ())} == {
        ("average", "16k"): (pytest.approx(0.4), 2, ""),
        ("average", "32k"): (0.3, 1, ""),
        ("a", "average"): (0.25, 2, ""),
        ("b", "average"): (0.6, 1, ""),
    }
    assert next(averages(rows, ())) == Average("m", "lv_eval", "average", "16k", "full", pytest.approx(0.4), 2, "")


def test_judges_are_not_mixed() -> None:
    """Each judge has averages of its own, with the scores that no judge decides."""

    def judged(task: str, value: float, judge: str, model: str = "m") -> Score:
        return score(task, "16k", value)._replace(entry="helmet_longqa", judge=judge, model=model)

    rows = [judged("a", 0.2, "x"), judged("a", 0.8, "y"), judged("b", 0.4, ""), judged("b", 1.0, "", "other")]
    found = {(a.model, a.judge): a.score for a in averages(rows, ()) if a.task == "average"}
    assert found == {("m", "x"): pytest.approx(0.3), ("m", "y"): pytest.approx(0.6), ("other", ""): 1.0}
    panels = curves(averages(rows, ()))
    assert list(panels) == ["helmet_longqa", "helmet_longqa, judge=x", "helmet_longqa, judge=y"]


def test_folders_are_not_mixed(tmp_path: Path) -> None:
    """Each folder of the user's own files has averages and a panel of its own, as it has columns of its own."""
    run = write_run(tmp_path, ENTRY, long_prompts(4, 500))
    spec = json.loads((run / "run_spec.json").read_text())
    for folder, value in {"fires": 0.25, "floods": 0.75}.items():
        own = shutil.copytree(run, run.with_name(folder))
        spec["scenario_spec"]["args"] |= {"path": folder}
        (own / "run_spec.json").write_text(json.dumps({**spec, "name": folder}))
        stat = {"name": {"name": "longctx_score", "split": "test", "sub_split": "json_kv"}, "mean": value}
        (own / "stats.json").write_text(json.dumps([stat]))
    shutil.rmtree(run)
    means = list(averages(scores(tmp_path, BENCHMARKS), ()))
    assert {(row.folder, row.task): (row.score, row.of) for row in means} == {
        (folder, task): (value, 1)
        for folder, value in {"fires": 0.25, "floods": 0.75}.items()
        for task in ("average", "json_kv")
    }
    assert list(curves(means)) == ["helmet_recall, path=fires", "helmet_recall, path=floods"]


def test_runs_of_other_kinds_are_not_mixed() -> None:
    """Other entries and contexts have averages of their own."""
    rows = [score("a", "16k", 0.2), score("a", "16k", 0.4)._replace(context="none")]
    rows.append(score("a", "16k", 0.6)._replace(entry="helmet_rag"))
    assert [(row.entry, row.context, row.score) for row in averages(rows, ()) if row.length == "average"] == [
        ("helmet_rag", "full", 0.6), ("lv_eval", "full", 0.2), ("lv_eval", "none", 0.4)
    ]  # fmt: skip


def test_instances_are_counted(tmp_path: Path) -> None:
    """Those that have the statistic: not those that failed, and each once, however often it was asked."""
    run = write_run(tmp_path, ENTRY, long_prompts(4, 500))
    path = run / "per_instance_stats.json"
    rows = json.loads(path.read_text())
    failed = {"name": {"name": "request_failed", "split": "test", "sub_split": "json_kv"}, "mean": 1.0}
    rows[0]["stats"] = [failed]
    path.write_text(json.dumps([*rows, *rows]))
    stats = json.loads((run / "stats.json").read_text())
    names = ("request_failed", "json_kv_score", "num_instances", "jury_alpha")
    stats += [{"name": {**failed["name"], "name": name}, "mean": 4.0} for name in names]
    (run / "stats.json").write_text(json.dumps(stats))
    counts = {row.metric: row.instances for row in scores(tmp_path, BENCHMARKS)}
    assert counts == {"longctx_score": 3, "request_failed": 1, "json_kv_score": 3, "num_instances": 4, "jury_alpha": 4}


def repeat_run(suite: Path, characters: int = 500) -> Path:
    """A run that asks two questions twice; the first answer to each is right, the second wrong."""
    run = write_run(suite, ENTRY, long_prompts(2, characters))
    states = json.loads((run / "scenario_state.json").read_text())
    again = copy.deepcopy(states["request_states"])
    for state in again:
        state["train_trial_index"], state["result"]["completions"][0]["text"] = 1, "wrong"
    states["request_states"] += again
    rows = json.loads((run / "per_instance_stats.json").read_text())
    stats = [{**rows[0]["stats"][0], "mean": 0.0}]
    rows += [{**row, "train_trial_index": 1, "stats": stats} for row in rows]
    for name, content in (("scenario_state", states), ("per_instance_stats", rows)):
        (run / f"{name}.json").write_text(json.dumps(content, indent=2))
    return run


def test_repeats_are_told_apart(tmp_path: Path) -> None:
    """Each answer has its own score; an instance counts once."""
    repeat_run(tmp_path)
    rows = list(answers(tmp_path))
    assert [(row.instance, row.repeat, row.score) for row in rows] == [
        ("json_kv-0", 1, 1.0), ("json_kv-1", 1, 1.0), ("json_kv-0", 2, 0.0), ("json_kv-1", 2, 0.0)
    ]  # fmt: skip
    assert {row.instances for row in scores(tmp_path, BENCHMARKS)} == {2}


def test_answers_say_what_went_wrong(tmp_path: Path) -> None:
    """The error of a request without an answer and its kind, and of each answer the depth and the tokens."""
    run = write_run(tmp_path, ENTRY, long_prompts(2, 500))
    states = json.loads((run / "scenario_state.json").read_text())
    states["request_states"][0]["result"] |= {"success": False, "error": "too many tokens", "completions": []}
    rows = json.loads((run / "per_instance_stats.json").read_text())
    name = {"split": "test", "sub_split": "json_kv"}
    rows[0]["stats"] = [{"name": {"name": "request_too_long", **name}, "mean": 1.0}]
    rows[1]["stats"] += [
        {"name": {"name": each, **name}, "mean": value} for each, value in (("depth", 0.5), ("input_tokens", 321.0))
    ]
    for stem, content in (("scenario_state", states), ("per_instance_stats", rows)):
        (run / f"{stem}.json").write_text(json.dumps(content, indent=2))
    found = [(row.error, row.failure, row.score, row.depth, row.tokens) for row in answers(tmp_path, BENCHMARKS)]
    assert found[0][:3] == ("too many tokens", "request_too_long", None)
    assert found[1] == ("", "", 1.0, 0.5, 321)


def test_versions_are_exported(tmp_path: Path) -> None:
    """The package version and the comparability number of the run spec are in every table."""
    run = write_run(tmp_path, ENTRY, long_prompts(2, 500))
    spec = json.loads((run / "run_spec.json").read_text())
    spec["scenario_spec"]["args"] |= {"comparability": 3}
    spec["metric_specs"][0]["args"] |= {"package": "9.8.7"}
    (run / "run_spec.json").write_text(json.dumps(spec))
    rows = list(scores(tmp_path, BENCHMARKS))
    for table in (rows, averages(rows, BENCHMARKS), answers(tmp_path)):
        assert {(row.package, row.comparability) for row in table} == {("9.8.7", "3")}


def test_what_is_lacking_is_said(tmp_path: Path) -> None:
    """In a score's row and in those of its averages, with the tasks that no run has."""
    write_run(tmp_path, ENTRY, long_prompts(4, 500))
    rows = list(scores(tmp_path, BENCHMARKS))
    assert [row.lacking for row in rows] == ["num_samples:json_kv=4/100"]
    others = [task.name for task in HELMET.entries["helmet_recall"].tasks if task.name != "json_kv"]
    assert {row.task: row.lacking.split(";") for row in averages(rows, BENCHMARKS)} == {
        "average": [*(f"missing:{name}" for name in others), "num_samples:json_kv=4/100"],
        "json_kv": ["num_samples:json_kv=4/100"],
    }


def test_published_scores_lack_nothing(tmp_path: Path) -> None:
    """Those of a whole category have no tasks, and of how many instances they are nobody says."""
    write_reference(HELMET, tmp_path, ["GPT-4o-08*"], 131072)
    rows = list(scores(tmp_path, BENCHMARKS))
    means = [row for row in averages(rows, BENCHMARKS) if row.task == "average"]
    assert means
    assert {row.lacking for row in (*rows, *means)} == {""}
    assert {row.instances for row in rows} == {None}


@pytest.mark.parametrize("name", ["run_spec", "stats", "per_instance_stats", "scenario_state"])
@pytest.mark.parametrize(
    "damage", [lambda data: data[:-40], lambda data: b"[1]", lambda data: b'{"request_states": [3]}']
)
def test_a_damaged_file_is_named(name: str, damage: Callable[[bytes], bytes], tmp_path: Path) -> None:
    """In one line, and no file is left half written."""
    run = write_run(tmp_path / "s", ENTRY, long_prompts(2, 500))
    path = run / f"{name}.json"
    path.write_bytes(damage(path.read_bytes()))
    with pytest.raises(InputError, match=rf"{name}\.json cannot be read \(\w+\); make that run again"):
        write_csv(tmp_path / "x.csv", (), chain(scores(tmp_path / "s", BENCHMARKS), answers(tmp_path / "s")))
    assert not list(tmp_path.glob("x*"))


def test_tables_are_whole_or_not_there(tmp_path: Path) -> None:
    """What was there stays if writing fails."""
    path = tmp_path / "x.csv"
    assert write_csv(path, ("a",), [(1,)]) == 1
    with pytest.raises(ZeroDivisionError):
        write_csv(path, ("a",), ((1 / number,) for number in (1, 0)))
    assert list(csv.reader(path.read_text("utf-8-sig").splitlines())) == [["a"], ["1"]]
    assert list(tmp_path.iterdir()) == [path]
