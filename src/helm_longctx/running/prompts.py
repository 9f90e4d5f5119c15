"""The prompts of a run, whole and once: `prompts.zst` holds the texts, `prompts.json` says where each stands.

Prompts that share text follow each other, and the compressor looks back 32 MB, so that a book with forty questions or
a haystack at six depths takes the room of one. `zstd -dc prompts.zst` gives all of them.
"""

from __future__ import annotations

from collections.abc import Iterable
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
    """Write a run's prompts.

    Args:
        prompts: (instance id, prompt), in an order that puts alike ones together. One that was there is not stored again.
    """
    parameters = zstandard.ZstdCompressionParameters.from_level(3, window_log=_WINDOW_LOG, enable_ldm=True)
    compressor = zstandard.ZstdCompressor(compression_params=parameters)
    index: dict[str, str] = {}
    places: dict[str, tuple[int, int, int]] = {}
    frame = start = 0
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
    (run_path / INDEX).write_bytes(orjson.dumps({"instances": index, "prompts": places}, option=orjson.OPT_INDENT_2))


def full_prompt(run_path: Path, instance_id: str) -> str:
    """The prompt that was sent for an instance, as it was sent; of HELM's own runner's runs too.

    Raises:
        InputError: there is no such run or instance, or the stored text is not what was sent.
    """
    if not (run_path / INDEX).is_file():
        return _stock_prompt(run_path, instance_id)
    index = orjson.loads((run_path / INDEX).read_bytes())
    name = _chosen(run_path, index["instances"], instance_id)
    frame, start, size = index["prompts"][name]
    with (run_path / TEXTS).open("rb") as file:
        file.seek(frame)
        with zstandard.ZstdDecompressor().stream_reader(file) as stream:
            stream.seek(start)
            data = stream.read(size)
    prompt = data.decode("utf-8", "surrogatepass")
    if digest(prompt) != name:
        raise InputError(f"{run_path / TEXTS} is damaged: the prompt of {instance_id} is not what was sent")
    return prompt


def _stock_prompt(run_path: Path, instance_id: str) -> str:
    path = run_path / "scenario_state.json"
    if not path.is_file():
        raise InputError(f"{run_path} is not the folder of a run that has begun")
    states: list[dict[str, Any]] = orjson.loads(path.read_bytes())["request_states"]
    prompts = {state["instance"]["id"]: str(state["request"]["prompt"]) for state in reversed(states)}
    return _chosen(run_path, prompts, instance_id)


def _chosen(run_path: Path, by_instance: dict[str, str], instance_id: str) -> str:
    if instance_id not in by_instance:
        some = list(by_instance)[:3]
        raise bad_argument(run_path.name, "instance", instance_id, f"{', '.join(some)} … ({len(by_instance)} in all)")
    return by_instance[instance_id]
