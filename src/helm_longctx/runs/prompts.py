"""Stores each prompt of a run once: `prompts.zst` has the texts, and `prompts.json` is the index.

Prompts that share text are written one after the other, and the compressor looks back 32 MB. So a book with forty
questions, or a haystack at six depths, needs the space of one prompt. `zstd -dc prompts.zst` prints all prompts.
"""

import hashlib
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from typing import TypeVar

import orjson
import zstandard

from helm_longctx.errors import InputError, bad_argument
from helm_longctx.redaction.abbreviation import digest
from helm_longctx.runs.elision import to_text
from helm_longctx.runs.files import STATES, State, find_sample, read_json, read_states, replace_file

TEXTS, INDEX = "prompts.zst", "prompts.json"
Value = TypeVar("Value")

_WINDOW_LOG = 25
"""Base-2 logarithm of the number of bytes that the compressor looks back."""

_FRAME = 256 << 20
"""Number of bytes of text in a frame, which is the largest number that is decompressed to read one prompt."""


def write_prompts(run_path: Path, prompts: Iterable[tuple[str, str]]) -> None:
    """Write a run's prompts, (instance's name, prompt), of which similar ones should be neighbours.

    Equal ones are stored once. The index is written last, so it always belongs to the texts in the same folder.
    """
    parameters = zstandard.ZstdCompressionParameters.from_level(3, window_log=_WINDOW_LOG, enable_ldm=True)
    compressor = zstandard.ZstdCompressor(compression_params=parameters)
    index: dict[str, str] = {}
    places: dict[str, tuple[int, int, int]] = {}
    frame = start = 0
    # An index of an earlier run would point to wrong places in the new texts.
    (run_path / INDEX).unlink(missing_ok=True)
    with (run_path / TEXTS).open("wb") as file, compressor.stream_writer(file, closefd=False) as stream:
        for instance, prompt in prompts:
            index[instance] = name = digest(prompt)
            if name in places:
                continue
            if start >= _FRAME:
                # A reader must start at a frame, so frames limit the decompression for one prompt.
                stream.flush(zstandard.FLUSH_FRAME)
                frame, start = file.tell(), 0
            data = prompt.encode("utf-8", "surrogatepass")
            stream.write(data)
            places[name] = (frame, start, len(data))
            start += len(data)
    content = {"instances": index, "prompts": places}
    replace_file(run_path / INDEX, orjson.dumps(content, option=orjson.OPT_INDENT_2))


def read_prompts(run_path: Path) -> Iterator[tuple[str, bytes]]:
    """Read the digest and the UTF-8 text of each prompt in the store of our runner, one at a time.

    Raises a `ValueError` for a wrong digest, and OSError, KeyError or ZstdError for a damaged file.
    """
    if not (run_path / INDEX).is_file():
        return
    places = orjson.loads((run_path / INDEX).read_bytes())["prompts"]
    with (run_path / TEXTS).open("rb") as file:
        # Without `read_across_frames` the reader stops at the end of the first frame. The index has the file's order.
        stream = zstandard.ZstdDecompressor().stream_reader(file, read_across_frames=True)
        for name, (_, _, size) in places.items():
            data = stream.read(size)
            if hashlib.sha256(data).hexdigest() != name:
                raise ValueError(f"{name} is damaged")
            yield name, data


def instance_names(prompts: Iterable[tuple[str | int | None, str | None, str]]) -> list[str]:
    """Return a name for each instance of a run: its id, if all instances with this id have the same prompt.

    Otherwise a number and the sub-split are added: `q7#1:asqa`, `q7#2:qampari`. Prompts are id (a number in some of
    HELM's own scenarios), sub-split and digest, in the data's order.
    """
    rows = [(str(instance_id), sub_split, prompt_digest) for instance_id, sub_split, prompt_digest in prompts]
    numbers: dict[str, dict[str, int]] = {}
    for instance_id, _, prompt_digest in rows:
        same = numbers.setdefault(instance_id, {})
        same.setdefault(prompt_digest, len(same) + 1)
    return [
        f"{name}#{numbers[name][prompt_digest]}" + (f":{sub_split}" if sub_split else "")
        if len(numbers[name]) > 1
        else name
        for name, sub_split, prompt_digest in rows
    ]


def full_prompt(run_path: Path, instance: str) -> str:
    """Return a prompt exactly as it was sent, a conversation as JSON of its messages, or raise an `InputError`."""
    if (run_path / INDEX).is_file():
        return stored_prompt(run_path, _choose(run_path, read_json(run_path / INDEX)["instances"], instance), instance)
    # HELM's own runner keeps a prompt whole in the request states.
    state = find_states(run_path, instance)[0]
    prompt = _prompt_text(state)
    if prompt_digest(state) != digest(prompt):
        raise InputError(f"{run_path / INDEX} is missing, and {STATES} has only a part of the prompt of {instance}")
    return prompt


def find_states(run_path: Path, instance: str) -> list[State]:
    """Return an instance's request states in the order of its repeats, or raise an `InputError`."""
    path = run_path / STATES
    if not path.is_file():
        raise InputError(f"{run_path} is not the folder of a run that has started; give another run")
    instances = ((state["instance"], state) for state in read_states(path))
    names = instance_names((each["id"], each.get("sub_split"), prompt_digest(state)) for each, state in instances)
    name = _choose(run_path, {each: each for each in names}, instance)
    return [state for each, state in zip(names, read_states(path), strict=True) if each == name]


def stored_prompt(run_path: Path, prompt_digest: str, instance: str) -> str:
    """Return the prompt with a digest in a run's store. Raises an `InputError` if it is damaged."""
    index = read_json(run_path / INDEX)
    with suppress(OSError, KeyError, UnicodeError, zstandard.ZstdError):
        frame, start, size = index["prompts"][prompt_digest]
        with (run_path / TEXTS).open("rb") as file:
            file.seek(frame)
            with zstandard.ZstdDecompressor().stream_reader(file) as stream:
                stream.seek(start)
                prompt = stream.read(size).decode("utf-8", "surrogatepass")
        if digest(prompt) == prompt_digest:
            return prompt
    raise InputError(f"{run_path / TEXTS} is damaged: the prompt of {instance} is not what was sent")


def prompt_digest(state: State) -> str:
    """Return the digest of the whole prompt of a request state, in which the text itself can be elided."""
    sample = find_sample(state["instance"])
    return sample.full_prompt["sha256"] if sample and sample.full_prompt else digest(_prompt_text(state))


def _prompt_text(state: State) -> str:
    return to_text(state["request"]["prompt"], state["request"].get("messages"))


def _choose(run_path: Path, by_name: Mapping[str, Value], name: str) -> Value:
    if name in by_name:
        return by_name[name]
    if rivals := [other for other in by_name if other.rpartition("#")[0] == name]:
        raise bad_argument(run_path.name, "instance", name, f"one of {', '.join(rivals)}, which share this id")
    some = list(by_name)[:3]
    raise bad_argument(run_path.name, "instance", name, f"one of {', '.join(some)} … ({len(by_name)} in all)")
