"""Reads fast tokenizers of Hugging Face with the package `tokenizers` alone.

transformers imports torch. That takes seconds and hundreds of MB. For models on servers, a tokenizer only counts and
cuts. So a tokenizer is read without transformers if its files say everything about it. `AutoTokenizer` then returns
the same tokens. A class of its own in transformers can change what the files say, so all other tokenizers are read with
transformers.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from tokenizers import Tokenizer

FILE = "tokenizer.json"
CONFIG = "tokenizer_config.json"

_DECODER = "added_tokens_decoder"
"""Key of the records of added tokens by their numbers."""

_PLAIN = frozenset({"PreTrainedTokenizer", "TokenizersBackend"})
"""Classes in transformers, without `Fast` at their end, that read the file and change nothing in it."""

_OLD_FILES = ("special_tokens_map.json", "added_tokens.json")
"""Files that transformers reads if the configuration has no `_DECODER`."""

_CHANGES = (
    *(
        "auto_map",
        "add_bos_token",
        "add_eos_token",
        "add_prefix_space",
        "split_special_tokens",
    ),
    "fix_mistral_regex",
)
"""Keys of the configuration by which transformers changes the tokenizer."""

_SPECIAL = tuple(
    f"{name}_token" for name in ("bos", "eos", "unk", "sep", "pad", "cls", "mask")
)
"""Keys of special tokens, in the order in which transformers adds those that the file lacks."""

_MODEL_TYPES = frozenset(
    {None, "", "glm4", "gpt_oss", "llama", "mistral", "olmo2", "smollm3"}
)
"""Types of models for which transformers takes the class that the configuration names; it has exceptions for some."""


class FastTokenizer:
    """A fast tokenizer of transformers that is read with transformers only for what counting and cutting do not need.

    Args:
        backend_tokenizer: the tokenizer of the package `tokenizers`.
        config: the content of its `tokenizer_config.json`.
        load: loads the whole tokenizer, for example for its `decode`: it can clean up spaces.
    """

    is_fast = True

    def __init__(
        self,
        backend_tokenizer: Tokenizer,
        config: Mapping[str, Any],
        load: Callable[[], Any],
    ):
        self.backend_tokenizer = backend_tokenizer
        self._config = config
        self._load = load

    @property
    def bos_token(self) -> str | None:
        """The token at the start of a text, or None if there is none."""
        return _content(self._config.get("bos_token"))

    @property
    def eos_token(self) -> str | None:
        """The token at the end of a text, or None if there is none."""
        return _content(self._config.get("eos_token"))

    @cached_property
    def _whole(self) -> Any:
        return self._load()

    def encode(self, text: str) -> list[int]:
        """Return the tokens of a text, special tokens included."""
        return self.backend_tokenizer.encode(text).ids

    def decode(self, tokens: Sequence[int], skip_special_tokens: bool = False) -> str:
        """Return the text of tokens."""
        # Without the key, it depends on the version of transformers whether spaces are cleaned up.
        if self._config.get("clean_up_tokenization_spaces", True):
            return str(
                self._whole.decode(tokens, skip_special_tokens=skip_special_tokens)
            )
        return self.backend_tokenizer.decode(
            tokens, skip_special_tokens=skip_special_tokens
        )

    def __call__(self, text: Any, **options: Any) -> Any:
        """Encode a text or a list of texts as the tokenizer of transformers does."""
        return self._whole(text, **options)


def read_fast_tokenizer(
    name: str,
    load: Callable[[], Any],
    revision: str | None = None,
) -> FastTokenizer | None:
    """Read a tokenizer without transformers, or None if it cannot be read so with certainty.

    Args:
        name: a folder, or the name of a model on the hub whose tokenizer is in the cache.
        load: loads it with transformers.
        revision: the revision on the hub.
    """
    # A run without a tokenizer needs neither of the two packages, and one with a folder only the second.
    from tokenizers import Tokenizer

    folder = Path(name)
    if not folder.is_dir():
        if name.count("/") == 1:
            from huggingface_hub import try_to_load_from_cache

            cached = try_to_load_from_cache(name, FILE, revision=revision)
        else:
            cached = None
        if not isinstance(cached, str):
            return None
        folder = Path(cached).parent
    if not (folder / FILE).is_file():
        return None
    try:
        config = json.loads((folder / CONFIG).read_bytes())
        model = folder / "config.json"
        if model.is_file():
            model_type = json.loads(model.read_bytes()).get("model_type")
        else:
            model_type = None
        has_older = (
            any((folder / name).exists() for name in _OLD_FILES)
            and _DECODER not in config
        )
        # Whether transformers reads the tokenizer's file, and changes nothing in it besides its special tokens.
        is_plain = str(config.get("tokenizer_class")).removesuffix("Fast") in _PLAIN
        is_plain &= all(config.get(key) is None for key in _CHANGES)
        if model_type not in _MODEL_TYPES or not is_plain or has_older:
            return None
        tokenizer = Tokenizer.from_file(str(folder / FILE))
        # A saved tokenizer can have settings for training.
        tokenizer.no_truncation()
        tokenizer.no_padding()
        if _add_tokens(tokenizer, config):
            return FastTokenizer(tokenizer, config, load)
        return None
    except (
        Exception
    ):  # the package raises plain Exception; transformers then says what is wrong
        return None


def _add_tokens(tokenizer: Tokenizer, config: Mapping[str, Any]) -> bool:
    """Add the special tokens that the file lacks, as transformers does. Return whether it would change nothing else."""
    from tokenizers import AddedToken

    added = tokenizer.get_added_tokens_decoder()
    known = {token.content for token in added.values()}
    for number, record in config.get(_DECODER, {}).items():
        token = added.get(int(number))
        if token is None or any(
            getattr(token, name) != value for name, value in record.items()
        ):
            return False
    named = {}
    for key, value in config.items():
        if key.endswith("_token") and value is not None:
            named[key] = value
    others = []
    for key, value in named.items():
        if key not in _SPECIAL or not isinstance(value, str):
            others.append(value)
    for key in ("additional_special_tokens", "extra_special_tokens"):
        others += config.get(key) or ()
    if not {_content(token) for token in others} <= known:
        return False
    special = dict.fromkeys(
        named[key] for key in _SPECIAL if key in named and isinstance(named[key], str)
    )
    tokenizer.add_tokens(
        [AddedToken(token, special=True) for token in special if token not in known]
    )
    return True


def _content(token: Any) -> Any:
    """Return the text of a token or of its record."""
    if isinstance(token, dict):
        return token["content"]
    return token
