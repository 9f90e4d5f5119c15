"""Tests of display files at any length: their texts are elided and linked, and need little memory."""

from __future__ import annotations

import gzip
import hashlib
import html
import json
import re
import signal
import time
import tracemalloc
from pathlib import Path
from typing import Any
from urllib.parse import unquote

import pytest
import yaml
import zstandard
from helm.benchmark.presentation.run_display import write_run_display_json
from helm.benchmark.presentation.schema import read_schema
from helm.benchmark.run_spec import RunSpec

from helm_longctx.benchmarks.helmet.tasks import HELMET
from helm_longctx.errors import InputError
from helm_longctx.helm.codec import from_json
from helm_longctx.locks import hold_lock
from helm_longctx.results.leaderboard.display import OUTPUTS, write_display
from helm_longctx.results.leaderboard.schema import all_sections, make_schema
from helm_longctx.runs.prompts import LIMIT, write_prompts
from tests.support.fabricate_runs import (
    CHINESE,
    ENGLISH,
    long_prompts,
    repeat_run,
    write_run,
)
from tests.support.leaderboards import display
from tests.support.programs import run, start

ENTRY = "helmet_recall:task=json_kv,length=128k,model=longctx/null"


def linked(run: Path, text: str) -> str:
    """Return the whole text of the first link in a shown input."""
    match = re.search(r'href="benchmark_output/runs/([^"]+)"', text)
    assert match
    return gzip.decompress(
        (run.parent.parent / unquote(html.unescape(match[1]))).read_bytes()
    ).decode()


@pytest.mark.parametrize("words", [ENGLISH, CHINESE], ids=["english", "chinese"])
def test_long_texts_are_elided_and_linked(tmp_path: Path, words: list[str]) -> None:
    """A long text is elided around the evidence, and its whole prompt is stored in one file, although it is shown twice."""
    prompts = list(long_prompts(11, 60_000, words))
    run = write_run(tmp_path / "runs/s", ENTRY, prompts)
    instances, predictions, requests = display(run)
    for number, (prompt, answer) in enumerate(prompts):
        text = instances[number]["input"]["text"]
        sent = requests[number]["request"]["prompt"]
        assert f"<mark>[evidence, depth {10 * number}%: {answer}]</mark>" in text
        assert f"[evidence, depth {10 * number}%: {answer}]" in sent
        assert len(text) < 2 * LIMIT
        assert linked(run, text).startswith(prompt)
        assert linked(run, text).endswith("\nCorresponding value:")
        assert predictions[number]["predicted_text"] == f" {answer}"
    files = {path.name for path in (run / "prompts").iterdir()}
    assert len(files) == 12
    index = (run / "prompts/index.html").read_text()
    assert set(re.findall(r'href="([^"]+)"', index)) | {"index.html"} == files
    assert not list(run.glob(".display-*"))


def test_short_runs_are_as_helm_shows_them(tmp_path: Path) -> None:
    """Display files of short runs have the content that HELM gives them, with statistics, notes and thoughts."""
    run = write_run(tmp_path / "runs/s", ENTRY, long_prompts(3, 5_000))
    states = json.loads((run / "scenario_state.json").read_text())
    first = states["request_states"][0]
    last = states["request_states"][2]
    first["annotations"] = {"judge": {"verdicts": {"score": float("nan")}}}
    first["result"]["completions"][0]["thinking"] = {"text": "Let me see."}
    states["request_states"][1]["annotations"] = {"judge": {"text": "\ud800"}}
    last["instance"]["perturbation"] = {
        "name": "robustness",
        "robustness": True,
        "fairness": False,
        "computed_on": "worst",
    }
    (run / "scenario_state.json").write_text(json.dumps(states, indent=2))
    (tmp_path / "schema.yaml").write_text(
        yaml.safe_dump(make_schema(all_sections([HELMET])))
    )
    spec = from_json((run / "run_spec.json").read_text(), RunSpec)
    schema = read_schema(str(tmp_path / "schema.yaml"))
    write_display(run, spec, schema, skip_completed=False)
    ours = [(run / name).read_text() for name in OUTPUTS]
    write_run_display_json(str(run), spec, schema, False)
    # Ours has null where HELM writes NaN, which no browser reads.
    assert [json.loads(text) for text in ours] == [
        json.loads((run / name).read_text(), parse_constant=lambda name: None)
        for name in OUTPUTS
    ]
    assert json.loads(ours[1])[0]["stats"]["longctx_score"] == 1.0
    assert not (run / "prompts").exists()


def test_repeats_are_told_apart(tmp_path: Path) -> None:
    """Each repeated answer is on the page with its own score, and the list of prompts has each instance once."""
    run = repeat_run(tmp_path / "runs/s", 10_000)
    _, predictions, _ = display(run)
    assert [(row["instance_id"], row["train_trial_index"], row["predicted_text"]) for row in predictions][2:] == [
        ("json_kv-0", 1, "wrong"), ("json_kv-1", 1, "wrong")
    ]  # fmt: skip
    assert (run / "prompts/index.html").read_text().count("<li>") == 2


def test_prompts_are_no_markup(tmp_path: Path) -> None:
    """Markup in a prompt is shown as text."""
    evil = "</div><script>alert(1)</script><img src=x onerror=alert(1)>&amp;" * 400
    run = write_run(tmp_path / "runs/s", ENTRY, [(evil, "</mark><script>")])
    text = display(run)[0][0]["input"]["text"]
    assert "<script" not in text
    assert text.count("<img") == 1
    assert "&lt;script&gt;alert(1)&lt;/script&gt;" in text
    assert linked(run, text).startswith(evil)


def test_short_inputs_are_no_markup(tmp_path: Path) -> None:
    """A short input that the front end would take for HTML is escaped, so the page shows its text."""
    evil = '<br><img src="data:image;base64,x" onerror="alert(1)"><script>alert(1)</script>&amp;'
    run = write_run(tmp_path / "runs/s", ENTRY, [(evil, "x"), ("<script>", "x")])
    change_states(
        run,
        lambda state: state["instance"]["extra_data"].update(
            full_prompt={"sha256": "gone"}
        ),
    )
    first, second = (instance["input"]["text"] for instance in display(run)[0])
    assert html.escape(evil, quote=False) in first
    assert "<script" not in first
    assert first.count("<img") == 1
    assert second == "<script>"  # shown as text


def change_states(run: Path, change: Any) -> None:
    path = run / "scenario_state.json"
    content = json.loads(path.read_text())
    for state in content["request_states"]:
        change(state)
    path.write_text(json.dumps(content, indent=2))


def test_a_request_without_an_answer_is_shown(tmp_path: Path) -> None:
    """A request without an answer shows its error instead, where HELM's own code would end with an exception."""

    def fail(state: Any) -> None:
        state["result"] = {
            "success": False,
            "embedding": [],
            "completions": [],
            "cached": False,
            "error": "overload",
        }

    run = write_run(tmp_path / "runs/s", ENTRY, long_prompts(2, 9_000))
    change_states(run, fail)
    assert [p["predicted_text"] for p in display(run)[1]] == [
        "[no answer: overload]"
    ] * 2


def test_a_cut_prompt_does_not_hide_the_input(tmp_path: Path) -> None:
    """An input has a file of its own if the prompt that was sent does not contain all of it."""

    def cut(state: Any) -> None:
        state["request"]["prompt"] = state["request"]["prompt"][:9_000]

    ((prompt, answer),) = long_prompts(1, 20_000)
    run = write_run(tmp_path / "runs/s", ENTRY, [(prompt, answer)])
    change_states(run, cut)
    instances, _, requests = display(run)
    assert linked(run, instances[0]["input"]["text"]) == prompt
    name = re.match(r"\[whole prompt: (\S+)\]", requests[0]["request"]["prompt"])
    assert name
    assert (
        gzip.decompress((run / "prompts" / name[1]).read_bytes()).decode()
        == prompt[:9_000]
    )


def test_elided_runs_are_linked_to_what_they_stored(tmp_path: Path) -> None:
    """Elided states are linked to the whole prompts that the runner stored in compressed frames."""
    prompts = list(long_prompts(3, 30_000, CHINESE))
    run = write_run(
        tmp_path / "runs/s",
        ENTRY,
        [(prompt[:500] + answer, answer) for prompt, answer in prompts],
    )
    whole = {
        hashlib.sha256(prompt.encode()).hexdigest(): prompt for prompt, _ in prompts
    }
    places = {name: [0, 0, len(prompt.encode())] for name, prompt in whole.items()}
    (run / "prompts.json").write_text(json.dumps({"instances": {}, "prompts": places}))
    compress = zstandard.ZstdCompressor().compress
    (run / "prompts.zst").write_bytes(
        b"".join(compress(prompt.encode()) for prompt in whole.values())
    )
    digests = iter(whole)

    def point(state: Any) -> None:
        digest = next(digests)
        state["instance"]["extra_data"]["full_prompt"] = {
            "sha256": digest,
            "characters": len(whole[digest]),
        }

    change_states(run, point)
    assert [linked(run, i["input"]["text"]) for i in display(run)[0]] == [
        prompt for prompt, _ in prompts
    ]


def test_files_of_an_earlier_run_go(tmp_path: Path) -> None:
    """A run that is repeated in the same folder keeps no prompts of the earlier run."""
    run = write_run(tmp_path / "runs/s", ENTRY, long_prompts(3, 9_000))
    display(run)
    before = {path.name for path in (run / "prompts").iterdir()}
    change_states(run, lambda state: state["request"].update(prompt="another " * 2_000))
    display(run)
    after = {path.name for path in (run / "prompts").iterdir()}
    assert before & after == {"index.html"}
    assert len(after) == 5  # the prompt, and three inputs that it does not hold


def test_what_a_killed_summary_left_is_written_again(tmp_path: Path) -> None:
    """A file of a summary that was killed, which can be cut off, is written again, because the list is missing."""
    run = write_run(tmp_path / "runs/s", ENTRY, long_prompts(2, 9_000))
    display(run)
    texts = {
        path.name: path.read_bytes() for path in (run / "prompts").glob("*.txt.gz")
    }
    for name in texts:
        (run / "prompts" / name).write_bytes(b"cut off")
    (run / "prompts/index.html").unlink()
    display(run)
    assert {
        path.name: path.read_bytes() for path in (run / "prompts").glob("*.txt.gz")
    } == texts
    assert (run / "prompts/index.html").is_file()


def test_completed_runs_can_be_skipped(tmp_path: Path) -> None:
    """Existing display files stay if `--skip-completed-run-display-json` is given."""
    run = write_run(tmp_path / "runs/s", ENTRY, long_prompts(2, 9_000))
    display(run)
    (run / OUTPUTS[0]).write_text("[]")
    assert display(run, skip_completed=True)[0] == []
    assert len(display(run)[0]) == 2


def test_memory(tmp_path: Path) -> None:
    """Prompts are in memory one after the other, so the peak is far below the size of all prompts."""
    run = write_run(tmp_path / "runs/s", ENTRY, long_prompts(200, 300_000))
    tracemalloc.start()
    try:
        display(run)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak < 200 * 300_000 / 5


@pytest.mark.parametrize("damaged", [b"", b"no zstd", None])
def test_stored_prompts_that_are_damaged(
    damaged: bytes | None, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """Damaged stored prompts get no links instead of wrong ones, and a message says how many are missing."""
    run = write_run(tmp_path / "runs/s", ENTRY, long_prompts(2, 9_000))
    whole = [prompt for prompt, _ in long_prompts(2, 9_000)]
    write_prompts(run, zip("ab", whole, strict=True))
    digests = iter(json.loads((run / "prompts.json").read_bytes())["prompts"])

    def elide(state: Any) -> None:
        state["instance"]["extra_data"]["full_prompt"] = {
            "sha256": next(digests),
            "characters": 9_000,
        }
        state["instance"]["input"]["text"] = state["request"]["prompt"] = "elided"

    change_states(run, elide)
    if damaged is None:
        (run / "prompts.zst").unlink()
    else:
        (run / "prompts.zst").write_bytes(damaged)
    assert [instance["input"]["text"] for instance in display(run)[0]] == ["elided"] * 2
    assert not list(run.glob("prompts/*"))
    assert "2 whole prompts cannot be shown" in caplog.text


def test_statistics_that_are_cut_off(tmp_path: Path) -> None:
    """One line names a file of statistics that is cut off."""
    run = write_run(tmp_path / "runs/s", ENTRY, long_prompts(2, 9_000))
    path = run / "per_instance_stats.json"
    path.write_bytes(path.read_bytes()[:-50])
    with pytest.raises(InputError, match=r"per_instance_stats\.json cannot be read"):
        display(run)


@pytest.fixture
def long_suite(tmp_path: Path) -> Path:
    """Return the folder of a run whose pages take a second."""
    return write_run(
        tmp_path / "benchmark_output/runs/s", ENTRY, long_prompts(60, 200_000)
    )


def test_the_next_summary_removes_what_a_kill_leaves(
    tmp_path: Path, long_suite: Path
) -> None:
    """A summary removes the temporary files that a killed summary left."""
    killed = start("helm-longctx", "summarize", "--suite", "s", folder=tmp_path)
    while not list(long_suite.glob(".display-*")):
        assert killed.poll() is None
        time.sleep(0.001)
    killed.kill()
    assert killed.wait() == -signal.SIGKILL
    assert list(long_suite.glob(".display-*"))
    again = run("helm-longctx", "summarize", "--suite", "s", folder=tmp_path)
    assert again.returncode == 0, again.stderr
    assert not list(long_suite.glob(".display-*"))


def test_two_summaries_at_once(tmp_path: Path, long_suite: Path) -> None:
    """Two summaries at once succeed, because neither removes the files that the other is writing."""
    logs = [tmp_path / "one", tmp_path / "two"]
    processes = [
        start("helm-longctx", "summarize", "--suite", "s", folder=tmp_path, output=log)
        for log in logs
    ]
    assert [process.wait(300) for process in processes] == [0, 0], [
        log.read_text() for log in logs
    ]
    assert not list(long_suite.glob(".display-*"))
    assert len(json.loads((long_suite / "instances.json").read_text())) == 60


def test_files_of_a_running_summary_stay(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Temporary files stay while another process holds the lock, even after the wait is over."""
    run = write_run(tmp_path / "runs/s", ENTRY, long_prompts(2, 500))
    (run / ".display-other").mkdir()
    monkeypatch.setattr("helm_longctx.results.leaderboard.display._PATIENCE", 0.01)
    with hold_lock(run / ".display.lock", "test") as is_held:
        assert is_held
        assert len(display(run)[0]) == 2
    assert [path.name for path in run.glob(".display-*")] == [".display-other"]
    display(run)
    assert not list(run.glob(".display-*"))
