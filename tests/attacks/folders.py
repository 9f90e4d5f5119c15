"""Folders of local models with one thing wrong each. None of them may be scored; each is refused in one line."""

from __future__ import annotations

import json
import shutil
import struct
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
from safetensors.torch import load_file, save_file

from tests.models.small_models import save_model

Break = Callable[[Path], Any]
"""Breaks a model's folder. What it returns, if anything, is added to the model's entry."""

WEIGHTS = "model.safetensors"
INDEX = "model.safetensors.index.json"
QUERY = "model.layers.0.self_attn.q_proj.weight"
ADAPTER = "adapter_model.safetensors"


def change_tensors(
    change: Callable[[dict[str, Any]], Any], file: str = WEIGHTS
) -> Break:
    """Return what changes the tensors of a file."""

    def break_folder(folder: Path) -> None:
        tensors = load_file(folder / file)
        change(tensors)
        save_file(tensors, folder / file, {"format": "pt"})

    return break_folder


def change_json(file: str, **changes: Any) -> Break:
    """Return what changes the fields of a JSON file."""

    def break_folder(folder: Path) -> None:
        content = json.loads((folder / file).read_bytes())
        (folder / file).write_text(json.dumps({**content, **changes}))

    return break_folder


def write(file: str, content: str | bytes) -> Break:
    """Return what replaces a file."""

    def break_folder(folder: Path) -> None:
        data = content if isinstance(content, bytes) else content.encode()
        (folder / file).write_bytes(data)

    return break_folder


def remove(file: str) -> Break:
    """Return what removes a file."""

    def break_folder(folder: Path) -> None:
        (folder / file).unlink()

    return break_folder


def _fill(value: float) -> Callable[[dict[str, Any]], None]:
    def change(tensors: dict[str, Any]) -> None:
        for tensor in tensors.values():
            tensor.fill_(value)

    return change


def _put(value: float) -> Callable[[dict[str, Any]], None]:
    def change(tensors: dict[str, Any]) -> None:
        tensors[QUERY][0, 0] = value

    return change


def _reshape(tensors: dict[str, Any]) -> None:
    tensors[QUERY] = tensors[QUERY][:-1].contiguous()


def _rename_all(tensors: dict[str, Any]) -> None:
    for name in [*tensors]:
        tensors[f"other.{name}"] = tensors.pop(name)


def _cut_file(folder: Path) -> None:
    path = folder / WEIGHTS
    path.write_bytes(path.read_bytes()[:-1000])


def _set_header(folder: Path) -> None:
    path = folder / WEIGHTS
    path.write_bytes(struct.pack("<Q", 2**62) + path.read_bytes()[8:])


def _shard(folder: Path, left_out: str = "", renamed: str = "") -> None:
    """Divide the weights into two files with an index."""
    tensors = load_file(folder / WEIGHTS)
    (folder / WEIGHTS).unlink()
    names = sorted(tensors)
    halves = {"a.safetensors": names[::2], "b.safetensors": names[1::2]}
    weight_map = {}
    for file, half in halves.items():
        for name in half:
            weight_map[name] = file
        kept = {name: tensors[name] for name in half if name != left_out}
        save_file(kept, folder / file, {"format": "pt"})
    if renamed:
        weight_map[renamed] = weight_map.pop(QUERY)
    index = {"metadata": {"total_size": 1}, "weight_map": weight_map}
    (folder / INDEX).write_text(json.dumps(index))


def _lose_shard(folder: Path) -> None:
    _shard(folder)
    (folder / "b.safetensors").unlink()


def _swap_shards(folder: Path) -> None:
    _shard(folder)
    shutil.copyfile(folder / "a.safetensors", folder / "b.safetensors")


def _leave_out_of_shard(folder: Path) -> None:
    _shard(folder, left_out=QUERY)


def _break_index(folder: Path) -> None:
    _shard(folder)
    (folder / INDEX).write_text('{"weight_map": []}')


def _pickle_weights(folder: Path) -> None:
    torch.save(load_file(folder / WEIGHTS), folder / "pytorch_model.bin")
    (folder / WEIGHTS).unlink()


def _make_folder(folder: Path) -> None:
    (folder / WEIGHTS).unlink()
    (folder / WEIGHTS).mkdir()


def _link_to_nothing(folder: Path) -> None:
    (folder / WEIGHTS).unlink()
    (folder / WEIGHTS).symlink_to(folder / "nothing")


def _tie_without_both(folder: Path) -> None:
    change_json("config.json", tie_word_embeddings=True)(folder)

    def change(tensors: dict[str, Any]) -> None:
        del tensors["model.embed_tokens.weight"]
        tensors.pop("lm_head.weight", None)

    change_tensors(change)(folder)


def _grow_vocabulary(folder: Path) -> None:
    path = folder / "tokenizer.json"
    content = json.loads(path.read_bytes())
    vocabulary = content["model"]["vocab"]
    shift = 1000
    content["model"]["vocab"] = {
        name: number + (shift if number > 3 else 0)
        for name, number in vocabulary.items()
    }
    path.write_text(json.dumps(content))


def _change_tokenizer(**fields: Any) -> Break:
    """Return what changes the fields of the model of a tokenizer."""

    def break_folder(folder: Path) -> None:
        path = folder / "tokenizer.json"
        content = json.loads(path.read_bytes())
        content["model"] |= fields
        path.write_text(json.dumps(content))

    return break_folder


def _set_pattern(pattern: str) -> Break:
    """Return what splits texts by a pattern before they are encoded."""

    def break_folder(folder: Path) -> None:
        path = folder / "tokenizer.json"
        content = json.loads(path.read_bytes())
        content["pre_tokenizer"] = {
            "type": "Split",
            "pattern": {"Regex": pattern},
            "behavior": "Isolated",
            "invert": False,
        }
        path.write_text(json.dumps(content))

    return break_folder


def _make_huge(file: str) -> Break:
    def break_folder(folder: Path) -> None:
        with (folder / file).open("wb") as opened:
            opened.truncate(2 << 30)  # a sparse file takes no room on the disk

    return break_folder


def _set_template(text: str) -> Break:
    def break_folder(folder: Path) -> dict[str, Any]:
        (folder / "chat_template.jinja").write_text(text)
        return {"style": "chat"}

    return break_folder


def _add_adapter(change: Break | None = None, **settings: Any) -> Break:
    """Return what adds an adapter for two projections, changed by `change`, which gets the adapter's folder."""

    def break_folder(folder: Path) -> dict[str, Any]:
        import peft

        model = save_and_load(folder)
        options: dict[str, Any] = {"r": 4, "target_modules": ["q_proj", "v_proj"]}
        torch.manual_seed(2)
        lora = peft.LoraConfig(**options, init_lora_weights=False)
        adapted = peft.get_peft_model(model, lora)
        adapter = folder / "adapter"
        adapted.save_pretrained(adapter)
        if change is not None:
            change(adapter)
        if settings:
            change_json("adapter_config.json", **settings)(adapter)
        return {"adapter": str(adapter)}

    return break_folder


def save_and_load(folder: Path) -> Any:
    """Return the model in a folder, as transformers loads it."""
    from transformers import AutoModelForCausalLM

    return AutoModelForCausalLM.from_pretrained(folder, dtype=torch.float32)


def _rename_prefix(tensors: dict[str, Any]) -> None:
    for name in [*tensors]:
        tensors[name.replace("self_attn", "attention")] = tensors.pop(name)


def _drop_pairs(tensors: dict[str, Any]) -> None:
    for name in [*tensors]:
        if "lora_B" in name:
            del tensors[name]


def _add_unknown(tensors: dict[str, Any]) -> None:
    tensors["base_model.model.model.layers.9.mlp.lora_A.weight"] = torch.ones(4, 32)


def _drop_layer(tensors: dict[str, Any]) -> None:
    for name in [*tensors]:
        if "layers.1." in name:
            del tensors[name]


def _widen(tensors: dict[str, Any]) -> None:
    for name, tensor in [*tensors.items()]:
        tensors[name] = torch.cat([tensor, tensor]).contiguous()


def _pickle_adapter(folder: Path) -> None:
    torch.save(load_file(folder / ADAPTER), folder / "adapter_model.bin")
    (folder / ADAPTER).unlink()


DEEP = "[" * 100_000 + "]" * 100_000

FOLDERS: dict[str, Break] = {
    "a tensor is missing": change_tensors(lambda tensors: tensors.pop(QUERY)),
    "the head is missing": change_tensors(
        lambda tensors: tensors.pop("lm_head.weight")
    ),
    "both tied tensors are missing": _tie_without_both,
    "a tensor is unknown": change_tensors(
        lambda tensors: tensors.update(extra=torch.ones(3))
    ),
    "a layer too much": change_json("config.json", num_hidden_layers=1),
    "a layer too few": change_json("config.json", num_hidden_layers=3),
    "all tensors have another prefix": change_tensors(_rename_all),
    "a tensor has another shape": change_tensors(_reshape),
    "all weights are NaN": change_tensors(_fill(float("nan"))),
    "a weight is NaN": change_tensors(_put(float("nan"))),
    "a weight is infinite": change_tensors(_put(float("inf"))),
    "the weights are cut": _cut_file,
    "the weights are empty": write(WEIGHTS, b""),
    "the weights are text": write(
        WEIGHTS, "version https://git-lfs.github.com/spec/v1\n"
    ),
    "the header claims 4 EB": _set_header,
    "the weights are missing": remove(WEIGHTS),
    "the weights are a folder": _make_folder,
    "the weights are a dangling link": _link_to_nothing,
    "the weights are pickled": _pickle_weights,
    "a shard is missing": _lose_shard,
    "a shard is there twice": _swap_shards,
    "a shard lacks a tensor": _leave_out_of_shard,
    "the index has another form": _break_index,
    "config.json is missing": remove("config.json"),
    "config.json is no JSON": write("config.json", "{"),
    "config.json is a list": write("config.json", "[]"),
    "config.json is deep": write("config.json", '{"a": ' + DEEP + "}"),
    "config.json names an unknown type": change_json(
        "config.json", model_type="unknown"
    ),
    "config.json names an encoder": change_json("config.json", model_type="bert"),
    "config.json needs code": change_json(
        "config.json", model_type="own", auto_map={"AutoModelForCausalLM": "own.Own"}
    ),
    "an absurd vocabulary": change_json("config.json", vocab_size=10**12),
    "an absurd width": change_json("config.json", hidden_size=10**9),
    "a negative width": change_json("config.json", hidden_size=-32),
    "no width": change_json("config.json", hidden_size=0),
    "a width beyond floats": write("config.json", '{"hidden_size": 1e999}'),
    "a width of true": change_json("config.json", hidden_size=True),
    "a vocabulary of -1": change_json("config.json", vocab_size=-1),
    "more heads than width": change_json("config.json", num_attention_heads=10**6),
    "a head of a gigabyte": change_json("config.json", head_dim=10**9),
    "a million layers": change_json("config.json", num_hidden_layers=10**6),
    "an absurd window": change_json("config.json", max_position_embeddings="many"),
    "no heads": change_json("config.json", num_attention_heads=0),
    "an unknown activation": change_json("config.json", hidden_act="unknown"),
    "an unknown quantization": change_json(
        "config.json", quantization_config={"quant_method": "unknown"}
    ),
    "tokenizer.json is missing": remove("tokenizer.json"),
    "tokenizer.json is no JSON": write("tokenizer.json", "{"),
    "tokenizer.json is deep": write("tokenizer.json", DEEP),
    "tokenizer.json has 2 GB": _make_huge("tokenizer.json"),
    "the tokenizer's pattern is quadratic": _set_pattern(r"\s+$"),
    "the tokenizer's pattern tries each end": _set_pattern(r"(?:\w+\s?)+\d"),
    "the tokenizer's pattern is none": _set_pattern("(["),
    "the tokenizer's vocabulary is a list": _change_tokenizer(vocab=[]),
    "the tokenizer's model is unknown": _change_tokenizer(type="own"),
    "a token has a negative number": _change_tokenizer(vocab={"a": -1}),
    "a token has a huge number": _change_tokenizer(vocab={"a": 10**12}),
    "the tokenizer is another model's": _grow_vocabulary,
    "tokenizer_config.json is no JSON": write("tokenizer_config.json", "{"),
    "generation_config.json is no JSON": write("generation_config.json", "{"),
    "the template has an error": _set_template("{% for %}"),
    "the template never ends": _set_template(
        "{% for a in range(99999) %}{% for b in range(99999) %}{% for c in range(99999) %}{% endfor %}"
        "{% endfor %}{% endfor %}"
    ),
    "the template leaves the question out": _set_template("{{ bos_token }}Hello"),
    "the adapter has another prefix": _add_adapter(
        change_tensors(_rename_prefix, ADAPTER)
    ),
    "the adapter has half of its pairs": _add_adapter(
        change_tensors(_drop_pairs, ADAPTER)
    ),
    "the adapter has an unknown tensor": _add_adapter(
        change_tensors(_add_unknown, ADAPTER)
    ),
    "the adapter lacks a layer": _add_adapter(change_tensors(_drop_layer, ADAPTER)),
    "the adapter has another shape": _add_adapter(change_tensors(_widen, ADAPTER)),
    "the adapter is NaN": _add_adapter(change_tensors(_fill(float("nan")), ADAPTER)),
    "the adapter is pickled": _add_adapter(_pickle_adapter),
    "the adapter has no weights": _add_adapter(remove(ADAPTER)),
    "the adapter is cut": _add_adapter(write(ADAPTER, b"1234")),
    "the adapter is for other modules": _add_adapter(
        None, target_modules=["none_of_these"]
    ),
    "the adapter has no configuration": _add_adapter(remove("adapter_config.json")),
    "the adapter's configuration is no JSON": _add_adapter(
        write("adapter_config.json", "{")
    ),
}
"""What is wrong with a folder, and what makes it so. Those with an adapter need peft."""


def make_folder(source: Path, folder: Path, name: str) -> dict[str, Any]:
    """Copy a model's folder, break it, and return its entry for `evaluate`."""
    shutil.copytree(source, folder)
    added = FOLDERS[name](folder)
    return {"path": str(folder), "dtype": "float32", **(added or {})}


def make_source(folder: Path) -> Path:
    """Save a small model without a fault."""
    return save_model(folder, positions=8192)


def find_refusal(entry: dict[str, Any]) -> str:
    """Load a model as a run does, and ask it a question. Return why it is refused; empty if it answers."""
    from helm.common.cache import BlackHoleCacheConfig
    from helm.common.request import Request
    from helm.tokenizers.huggingface_tokenizer import HuggingFaceTokenizer

    from helm_longctx.config.local_models import expand, make_files
    from helm_longctx.config.models import ConfiguredModel, _read_sampling
    from helm_longctx.config.schema import LocalModels
    from helm_longctx.errors import InputError
    from helm_longctx.models.local.huggingface import LongContextHuggingFaceClient

    options = dict(entry)
    is_chat = options.pop("style", None) == "chat"
    nowhere = BlackHoleCacheConfig()
    try:
        (model,) = expand(LocalModels(**options))
        configured = ConfiguredModel(model=model, path=())
        _read_sampling(configured)
        spec = make_files(model, configured.facts)["model_deployments.yaml"][
            "client_spec"
        ]
        path = entry["path"]
        tokenizer = HuggingFaceTokenizer(
            nowhere, path, pretrained_model_name_or_path=path
        )
        client = LongContextHuggingFaceClient(nowhere, tokenizer, **spec["args"])
        prompt = "What is the key of the door?"
        asked = Request(prompt=prompt, max_tokens=2, temperature=0.0)
        if is_chat:
            asked = Request(prompt=prompt, messages=[], max_tokens=2, temperature=0.0)
        result = client.make_request(asked)
    except (
        InputError,
        ZeroDivisionError,
    ) as error:  # a run says the second in one line
        return str(error)
    return "" if result.success else str(result.error)
