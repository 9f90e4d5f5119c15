"""Small random models with a tokenizer that is trained at once, saved in the hub's format."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import torch
import transformers
from tokenizers import Tokenizer, decoders, models, pre_tokenizers, processors, trainers

from helm_longctx.environment import ignore_broken_torchvision

BOS, END, TURN = "<s>", "</s>", "<turn>"
TEMPLATE = (
    "{{ bos_token }}{% for message in messages %}<turn>{{ message['role'] }}: {{ message['content'] }}</s>{% endfor %}"
    "{% if add_generation_prompt %}<turn>assistant: {% endif %}"
)
TEXT = "The river runs north of the town, where a king once built a school. What is the key of the door? It is 4711.\n"

SIZES: dict[str, Any] = {
    "hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 4, "intermediate_size": 64,
    "max_position_embeddings": 4096, "initializer_range": 0.6, "bos_token_id": 0, "eos_token_id": 1, "pad_token_id": 1,
}  # fmt: skip
GROUPED = {"num_key_value_heads": 2}
FAMILIES: dict[str, dict[str, Any]] = {
    "Llama": {**SIZES, **GROUPED},
    "Qwen2": {**SIZES, **GROUPED},
    "Mistral": {**SIZES, **GROUPED, "sliding_window": 24},
    "OPT": {**SIZES, "ffn_dim": 64, "word_embed_proj_dim": 32},
    "Mamba": {"hidden_size": 32, "num_hidden_layers": 2, "state_size": 4, "bos_token_id": 0, "eos_token_id": 1},
}


def save_tokenizer(folder: Path) -> Any:
    """Save a byte-level BPE with a beginning token and a chat template that writes it."""
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=330, special_tokens=[BOS, END, TURN], initial_alphabet=pre_tokenizers.ByteLevel.alphabet()
    )
    tokenizer.train_from_iterator([TEXT], trainer)
    tokenizer.post_processor = processors.TemplateProcessing(single=f"{BOS} $A", special_tokens=[(BOS, 0)])
    fast = transformers.PreTrainedTokenizerFast(tokenizer_object=tokenizer, bos_token=BOS, eos_token=END)
    fast.chat_template = TEMPLATE
    fast.save_pretrained(folder)
    return fast


def save_model(
    folder: Path, family: str = "Llama", seed: int = 1, positions: int | None = None, **changes: Any
) -> Path:
    """A random model of a family, and its tokenizer.

    Args:
        positions: that the model has; None for more than tests need.
        changes: to its generation configuration.
    """
    ignore_broken_torchvision()
    tokenizer = save_tokenizer(folder)
    config = getattr(transformers, f"{family}Config")(vocab_size=len(tokenizer), **FAMILIES[family])
    if positions is not None:
        config.max_position_embeddings = positions
    torch.manual_seed(seed)
    model = getattr(transformers, f"{family}ForCausalLM")(config)
    for name, value in changes.items():
        setattr(model.generation_config, name, value)
    model.save_pretrained(folder, safe_serialization=True)
    return folder
