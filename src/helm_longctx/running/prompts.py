"""The prompts of a run, whole and once: `prompts.zst` holds the texts, `prompts.json` says where each stands.

Prompts that share text follow each other, and the compressor looks back 32 MB, so that a book with forty questions or
a haystack at six depths takes the room of one. `zstd -dc prompts.zst` gives all of them.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path
from typing import Any

import orjson
import zstandard

from helm_longctx.errors import InputError, bad_argument
from helm_longctx.running.lean import digest

TEXTS, INDEX = "prompts.zst", "prompts.json"
_WINDOW_LOG = 25
_FRAME = 256 << 20
"""Bytes of text after which a new frame begins: what is read at most to get one prompt."""


def write_prompts(run_path: Path, prompts: Iterable[tuple[str, str]]) -> None:
    """Write a run's prompts. The index comes last: where there is one, the texts are those that it tells of.

    Args:
        prompts: (instance id, prompt), in an order that puts alike ones together. One that was there is not stored again.
    """
    parameters = zstandard.ZstdCompressionParameters.from_level(3, window_log=_WINDOW_LOG, enable_ldm=True)
    compressor = zstandard.ZstdCompressor(compression_params=parameters)
    index: dict[str, str] = {}
    places: dict[str, tuple[int, int, int]] = {}
    frame = start = 0
    (run_path / INDEX).unlink(missing_ok=True)
    with (run_path / TEXTS).open("wb") as file, compressor.stream_writer(file, closefd=False) as stream:
        for instance_id, prompt in prompts:
            index[instance_id] = name = digest(prompt)
            if name in places:
                continue
            if start >= _FRAME:
                stream.flush(zstandard.FLUSH_FRAME)
                frame, start = file.tell(), 0
            data = prompt.encode("utf-8", "surrogatepass")
            stream.write(data)
            places[name] = (frame, start, len(data))
            start += len(data)
    part = run_path / f"{INDEX}.part"
    part.write_bytes(orjson.dumps({"instances": index, "prompts": places}, option=orjson.OPT_INDENT_2))
    os.replace(part, run_path / INDEX)


def full_prompt(run_path: Path, instance_id: str) -> str:
    """The prompt that was sent for an instance, as it was sent; of HELM's own runner's runs too.

    Raises:
        InputError: there is no such run or instance, a file is damaged, or the stored text is not what was sent.
    """
    if not (run_path / INDEX).is_file():
        return _stock_prompt(run_path, instance_id)
    index = _parsed(run_path / INDEX)
    name = _chosen(run_path, index["instances"], instance_id)
    with suppress(OSError, UnicodeError, zstandard.ZstdError):
        prompt = _text(run_path / TEXTS, *index["prompts"][name])
        if digest(prompt) == name:
            return prompt
    raise InputError(f"{run_path / TEXTS} is damaged: the prompt of {instance_id} is not what was sent")


def _text(path: Path, frame: int, start: int, size: int) -> str:
    with path.open("rb") as file:
        file.seek(frame)
        with zstandard.ZstdDecompressor().stream_reader(file) as stream:
            stream.seek(start)
            return stream.read(size).decode("utf-8", "surrogatepass")


def _stock_prompt(run_path: Path, instance_id: str) -> str:
    path = run_path / "scenario_state.json"
    if not path.is_file():
        raise InputError(f"{run_path} is not the folder of a run that has begun")
    states = {state["instance"]["id"]: state for state in reversed(_parsed(path)["request_states"])}
    state = _chosen(run_path, states, instance_id)
    prompt: str = state["request"]["prompt"]
    sent = (state["instance"].get("extra_data") or {}).get("full_prompt", {}).get("sha256")
    if sent not in (None, digest(prompt)):
        raise InputError(f"{run_path / INDEX} is missing, and {path.name} holds {instance_id} only in part")
    return prompt


def _parsed(path: Path) -> Any:
    try:
        return json.loads(path.read_bytes())  # orjson takes no lone surrogates
    except ValueError as error:
        raise InputError(f"{path} is not a whole file; make that run again") from error


def _chosen(run_path: Path, by_instance: dict[str, Any], instance_id: str) -> Any:
    if instance_id not in by_instance:
        some = list(by_instance)[:3]
        raise bad_argument(run_path.name, "instance", instance_id, f"{', '.join(some)} … ({len(by_instance)} in all)")
    return by_instance[instance_id]
