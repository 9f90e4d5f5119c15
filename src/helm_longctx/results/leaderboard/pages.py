"""Writes the files for the page of a run of this package as a stream, with the same content as HELM's code.

HELM's code makes objects of all states and statistics of a run, which takes 2 ms and 40 kB for each instance.
"""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator
from contextlib import ExitStack, contextmanager
from itertools import chain, repeat
from pathlib import Path
from typing import Any

import orjson

from helm_longctx.runs.files import INSTANCE_STATS, STATES, State, read_rows, read_states, reading, repeat_of

INSTANCES, PREDICTIONS, REQUESTS = "instances.json", "display_predictions.json", "display_requests.json"
OUTPUTS = (INSTANCES, PREDICTIONS, REQUESTS)

Trial = tuple[str, str, int]
"""An answer's instance id, perturbation as JSON, and trial."""


def write_pages(run: Path, folder: Path, statistics: Collection[str], change: Callable[[State], State]) -> None:
    """Write the display files of a run whose states have one request for each trial.

    Args:
        run: the run's folder.
        folder: the folder for the files.
        statistics: names of the statistics that the page shows.
        change: makes the state for the page.

    Raises:
        InputError: the run's states or statistics are damaged.
    """
    stats = _trial_stats(run / INSTANCE_STATS, statistics)
    seen: set[tuple[str, str]] = set()
    with ExitStack() as stack:
        instances, predictions, requests = (stack.enter_context(_json_list(folder / name)) for name in OUTPUTS)
        for state in read_states(run / STATES):
            # HELM skips such states, too.
            if not state.get("result"):
                continue
            page, trial = change(state), _trial(state["instance"], state["instance"]["id"], state)
            if trial[:2] not in seen:
                seen.add(trial[:2])
                instances(page["instance"])
            about = {name: page["instance"][name] for name in ("perturbation",) if name in page["instance"]}
            about = {"instance_id": trial[0], **about, "train_trial_index": trial[2]}
            predictions({**about, **_prediction(page), "stats": stats.get(trial, {})})
            requests({**about, "request": page["request"]})


def _prediction(page: State) -> dict[str, Any]:
    """Return the fields of HELM's `DisplayPrediction` that an answer of text has."""
    completion = page["result"]["completions"][0]
    fields = {
        "reference_index": page.get("reference_index"),
        "annotations": page.get("annotations"),
        "thinking_text": (completion.get("thinking") or {}).get("text"),
    }
    present = {name: value for name, value in fields.items() if value is not None}
    return {"predicted_text": completion["text"], "base64_images": [], **present}


def _trial_stats(path: Path, statistics: Collection[str]) -> dict[Trial, dict[str, float]]:
    stats: dict[Trial, dict[str, float]] = defaultdict(dict)
    for row in read_rows(path):
        with reading(path):
            stats[_trial(row, row["instance_id"], row)].update(_means(row["stats"], statistics))
    return stats


def _means(stats: Iterable[State], statistics: Collection[str]) -> dict[str, float]:
    means = {stat["name"]["name"]: stat.get("mean") for stat in stats}
    return {name: mean for name, mean in means.items() if name in statistics and mean is not None}


def _trial(perturbed: State, instance: str, answer: State) -> Trial:
    perturbation = perturbed.get("perturbation")
    # A perturbation is a dictionary, which cannot be a key, so it becomes JSON.
    return instance, json.dumps(perturbation) if perturbation else "", repeat_of(answer)


@contextmanager
def _json_list(path: Path) -> Iterator[Callable[[Any], None]]:
    """Yield a function that writes the next element of a JSON list."""
    separators = chain([b"\n"], repeat(b",\n"))
    with path.open("wb") as file:
        file.write(b"[")

        def add(element: Any) -> None:
            try:
                data = orjson.dumps(element)
            except TypeError:  # a lone surrogate
                data = json.dumps(element).encode("ascii")
            file.write(next(separators) + data)

        yield add
        file.write(b"\n]")
