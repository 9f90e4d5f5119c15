"""Converts a GGUF file into a folder with safetensors weights and a tokenizer, and checks the result.

A GGUF file is only a source: models are loaded from the folder. Quantized weights become the numbers that they stand
for, so the folder is larger than the file.
"""

import math
import shutil
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from helm_longctx.data.download import check_space
from helm_longctx.environment import ignore_broken_torchvision, require
from helm_longctx.errors import InputError, bad_argument, shorten
from helm_longctx.models.local.model import ModelError
from helm_longctx.models.local.weights import Weights, describe_mismatch, load_weights

_DTYPES = ("float32", "bfloat16", "float16")
"""Number types of the folder's weights. Only float32 has every number of a quantized file."""

TEXT = (
    "The sun rises in the east and sets in the west. Water freezes at zero degrees"
    " Celsius and boils at one hundred degrees. A year has twelve months, a week has"
    " seven days, and a day has twenty-four hours. London is the capital of England,"
    " and Paris is the capital of France."
)
"""Plain English, on which the converted model has to be better than a guess."""

GUESSING = 0.6
"""A model whose loss is above this share of a blind guess's was converted wrongly. Mixed-up weights have about 1."""

_RULES = ("gpt-2", "smollm")
"""Rules by which a text is split before it is tokenized (`tokenizer.ggml.pre`), for which a tokenizer can be built."""

_CONTROL = 3
_USER_DEFINED = 4
"""Types of special tokens in `tokenizer.ggml.token_type`."""

_SPECIAL = ("bos", "eos", "unknown", "padding")
"""Tokens that a file names, as in `tokenizer.ggml.bos_token_id`."""


@dataclass(frozen=True)
class _Conversion:
    """What a conversion has found.

    Args:
        tensors: number of tensors, each of them equal to the file's.
        tokens: size of the vocabulary.
        loss: nats per token of `TEXT`.
        guess: nats per token of a blind guess, the logarithm of the vocabulary's size.
        window: number of positions that the model was trained for, or None if the file does not say it.
        can_chat: whether the tokenizer has a chat template.
    """

    tensors: int
    tokens: int
    loss: float
    guess: float
    window: int | None
    can_chat: bool


def convert(
    source: Path,
    folder: Path,
    dtype: str = "float32",
    tokenizer: str | None = None,
) -> _Conversion:
    """Write the model of a GGUF file to a folder, load it from there, and compare.

    Args:
        source: the GGUF file.
        folder: the folder; it must not exist, or be empty. It appears when everything is written.
        dtype: one of `_DTYPES`.
        tokenizer: hub name or folder of the model's tokenizer, or None for the one in the file.

    Raises:
        InputError: an argument is wrong, the file cannot be read, or the folder differs from the file.
    """
    require("local", "a GGUF file")
    if dtype not in _DTYPES:
        raise bad_argument("models convert", "dtype", dtype, _DTYPES)
    if not source.is_file():
        raise bad_argument(
            "models convert", "FILE", str(source), "the path of a GGUF file"
        )
    if folder.exists() and any(folder.iterdir()):
        raise bad_argument(
            "models convert",
            "--to",
            str(folder),
            "a folder that is empty or does not exist",
        )
    ignore_broken_torchvision()
    if tokenizer:
        from transformers import AutoTokenizer

        try:
            chosen: Any = AutoTokenizer.from_pretrained(
                tokenizer, trust_remote_code=False
            )
        except Exception as error:  # of the hub, the disk or the format
            reason = f"{type(error).__name__}: {shorten(str(error), 200)}"
            raise InputError(
                f"--tokenizer={tokenizer!r} cannot be loaded: {reason}"
            ) from error
    else:
        chosen = _read_tokenizer(source)
    folder.parent.mkdir(parents=True, exist_ok=True)
    # The folder gets its name at the end, so that no other process reads half a model.
    with tempfile.TemporaryDirectory(prefix=".convert-", dir=folder.parent) as name:
        part = Path(name) / "model"
        model = _read_model(source, dtype)
        tensors = _save(model, chosen, part)
        loss = _compare(model, chosen, part)
        guess = math.log(len(chosen))
        if not loss <= GUESSING * guess:  # a loss that is not a number fails, too
            raise InputError(
                f"{source}: the converted model predicts plain English with {loss:.1f}"
                f" nats per token, and a blind guess has {guess:.1f}; either this"
                " version of transformers converts its weights wrongly, or its"
                " tokenizer is another model's (give the model's own with --tokenizer)"
            )
        folder.mkdir(exist_ok=True)
        shutil.copytree(part, folder, dirs_exist_ok=True, copy_function=shutil.move)
    window = getattr(model.config, "max_position_embeddings", None)
    return _Conversion(
        tensors=tensors,
        tokens=len(chosen),
        loss=loss,
        guess=guess,
        window=window,
        can_chat=bool(chosen.chat_template),
    )


def _read_model(source: Path, dtype: str) -> Any:
    """Read the weights, with a check that the file has all of the model's and no others."""
    import torch
    from transformers import AutoModelForCausalLM

    try:
        # The package's types do not know that it returns two values here.
        loaded: Any = AutoModelForCausalLM.from_pretrained(
            source.parent,
            gguf_file=source.name,
            trust_remote_code=False,
            output_loading_info=True,
        )
        model, report = loaded
    except Exception as error:  # transformers, gguf and numpy raise many kinds for a file that they do not know
        reason = f"{type(error).__name__}: {shorten(str(error), 300)}"
        raise InputError(
            f"{source} cannot be read as a GGUF file of a causal language model: {reason}"
        ) from error
    if wrong := describe_mismatch(report):
        raise InputError(
            f"{source} does not have the weights of its architecture: {wrong}"
        )
    return model.to(getattr(torch, dtype)).eval()


def _save(model: Any, tokenizer: Any, folder: Path) -> int:
    from safetensors.torch import save_file

    # transformers refuses to save a model that it read from a GGUF file, so its parts are saved one by one.
    if hasattr(model.config, "quantization_config"):
        del model.config.quantization_config
    # A tensor that has two names, such as tied embeddings, is saved once, under the first.
    tensors = {}
    for name, tensor in model.named_parameters():
        tensors[name] = tensor.contiguous()
    check_space(folder.parent, sum(tensor.nbytes for tensor in tensors.values()))
    folder.mkdir()
    save_file(tensors, folder / "model.safetensors", {"format": "pt"})
    model.config.architectures = [type(model).__name__]
    model.config.save_pretrained(folder)
    model.generation_config.save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    return len(tensors)


def _compare(model: Any, tokenizer: Any, folder: Path) -> float:
    """Load the folder as a run does and compare each weight and the text's tokens. Return the loss on the text."""
    import torch
    from transformers import AutoTokenizer

    dtype = str(model.dtype).removeprefix("torch.")
    try:
        loaded = load_weights(Weights.find(str(folder), None, dtype, None))
    except ModelError as error:
        raise InputError(str(error)) from error
    saved = dict(loaded.named_parameters())
    for name, tensor in model.named_parameters():
        if not torch.equal(tensor, saved[name].to(tensor.device)):
            raise InputError(f"{folder}: the tensor {name} differs from the file's")
    tokens = AutoTokenizer.from_pretrained(folder)(TEXT)["input_ids"]
    if (
        tokens != tokenizer(TEXT)["input_ids"]
        or tokenizer.decode(tokens, skip_special_tokens=True) != TEXT
    ):
        raise InputError(
            f"{folder}: the tokenizer does not give the text back that it gets"
        )
    if max(tokens) >= loaded.get_input_embeddings().num_embeddings:
        raise InputError(f"{folder}: the tokenizer has more tokens than the model")
    ids = torch.tensor([tokens], device=loaded.device)
    with torch.inference_mode():
        return float(loaded(input_ids=ids, labels=ids).loss)


def _read_tokenizer(source: Path) -> Any:
    """Build the tokenizer that a GGUF file describes.

    transformers (5.23) builds one, too, but without the rule by which the model's own tokenizer first splits a text:
    several spaces before a number are other tokens.
    """
    from tokenizers import (
        AddedToken,
        Tokenizer,
        decoders,
        models,
        pre_tokenizers,
        processors,
    )
    from transformers import PreTrainedTokenizerFast

    fields = _read_fields(source)
    kind = fields.get("model")
    rule = fields.get("pre")
    if kind != "gpt2" or rule not in _RULES:
        raise InputError(
            f"{source} has a tokenizer of the kind {kind!r} with the rule {rule!r},"
            " which cannot be built exactly; give the hub name or the folder of the"
            " model's own tokenizer with --tokenizer"
        )
    tokens = fields["tokens"]
    vocabulary = {}
    for number, token in enumerate(tokens):
        vocabulary[token] = number
    merges = []
    for merge in fields["merges"]:
        merges.append(tuple(merge.split(" ")))
    built = Tokenizer(models.BPE(vocab=vocabulary, merges=merges))
    # SmolLM's digits are words of their own, also for the spaces before them.
    if rule == "smollm":
        digits = [pre_tokenizers.Digits(individual_digits=True)]
    else:
        digits = []
    built.pre_tokenizer = pre_tokenizers.Sequence(
        [*digits, pre_tokenizers.ByteLevel(add_prefix_space=False)]
    )
    built.decoder = decoders.ByteLevel()
    special = [
        n
        for n, kind in enumerate(fields["token_type"])
        if kind in (_CONTROL, _USER_DEFINED)
    ]
    built.add_special_tokens(
        [AddedToken(tokens[n], normalized=False, special=True) for n in special]
    )
    names = {}
    for name in _SPECIAL:
        if f"{name}_token_id" in fields:
            names[name] = tokens[fields[f"{name}_token_id"]]
    if fields.get("add_bos_token") and (begin := names.get("bos")):
        pairs = [(begin, vocabulary[begin])]
        built.post_processor = processors.TemplateProcessing(
            single=f"{begin} $A", special_tokens=pairs
        )
    options = {"unknown": "unk", "padding": "pad"}
    named = {}
    for name, token in names.items():
        named[f"{options.get(name, name)}_token"] = token
    fast: Any = PreTrainedTokenizerFast(  # type: ignore[no-untyped-call]
        tokenizer_object=built, clean_up_tokenization_spaces=False, **named
    )
    fast.chat_template = fields.get("chat_template")
    return fast


def _read_fields(source: Path) -> dict[str, Any]:
    """Read the fields of a GGUF file that describe its tokenizer, without their prefix."""
    from gguf import GGUFReader

    try:
        read = {}
        for name, field in GGUFReader(source).fields.items():
            if name.startswith("tokenizer."):
                read[name] = field.contents()
    except Exception as error:  # numpy and gguf raise many kinds for a malformed file
        reason = f"{type(error).__name__}: {shorten(str(error), 200)}"
        raise InputError(f"{source} cannot be read as a GGUF file: {reason}") from error
    fields = {}
    for name, value in read.items():
        fields[name.removeprefix("tokenizer.").removeprefix("ggml.")] = value
    return fields
