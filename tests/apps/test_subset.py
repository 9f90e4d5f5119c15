"""Tests of `helm-longctx subset` on published results."""

from __future__ import annotations

import json
from pathlib import Path

import pyhocon

from helm_longctx.tasks.entry import check_entry
from helm_longctx.tasks.registry import find_benchmark
from tests.support.commands import Command


def test_helmet(command: Command) -> None:
    """A subset of HELMET that half of the models selected keeps the ranking of the others at a quarter of the price."""
    assert (
        command("subset", "helmet", "--agreement", "0.9", "--json", "out.json") == 0
    ), command.err
    assert "Agreement with the ranking by the mean of everything" in command.out
    content = json.loads(Path("out.json").read_text())
    assert content["price"] <= 0.25
    assert content["agreement"]["the mean of everything"]["low"] >= 0.9
    entries = [
        entry["description"]
        for entry in pyhocon.ConfigFactory.parse_file("subset.conf")["entries"]
    ]
    assert len(entries) == len(content["parts"])
    for entry in entries:
        name, _, text = entry.partition(":")
        arguments = dict(part.split("=") for part in text.split(","))
        assert arguments.pop("model") == "text"
        assert int(arguments["num_samples"]) >= 5
        assert check_entry(find_benchmark("helmet"), name, arguments)


def test_lv_eval(command: Command) -> None:
    """`subset` says that ten models of LV-Eval do not suffice, and writes nothing."""
    assert command("subset", "lv_eval", "--price", "0.02") == 2
    assert "not enough models" in command.err
    assert not Path("subset.conf").exists()


def test_bad_arguments(command: Command) -> None:
    """Each mistake in the arguments of `subset` ends in one line."""
    assert command("subset", "helmt") == 2
    assert "did you mean helmet" in command.err
    assert command("subset", "mrcr") == 2
    assert (
        "benchmark='mrcr' has 0 models with a score in every task and length"
        in command.err
    )
    assert command("subset", "helmet", "--model", "no/such") == 2
    assert "model='no/such' is not a deployment that HELM knows" in command.err
