"""Small random models with a tokenizer that is trained at once, saved in the hub's format."""

from __future__ import annotations

from datetime import date
from pathlib import Path
from typing import Any

import torch
import transformers
import yaml
from tokenizers import Tokenizer, decoders, models, pre_tokenizers, processors, trainers

from helm_longctx.environment import ignore_broken_torchvision

BOS = "<s>"
END = "</s>"
TURN = "<turn>"
TEMPLATE = (
    "{{ bos_token }}{% for message in messages %}<turn>{{ message['role'] }}: {{ message['content'] }}</s>{% endfor %}"
    "{% if add_generation_prompt %}<turn>assistant: {% endif %}"
)
WINDOW = {"max_sequence_length": 500}

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
    "Mamba": {
        "hidden_size": 32,
        "num_hidden_layers": 2,
        "state_size": 4,
        "bos_token_id": 0,
        "eos_token_id": 1,
    },
}


def save_tokenizer(folder: Path) -> Any:
    """Save a byte-level BPE with a beginning token and a chat template that writes it."""
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=330,
        special_tokens=[BOS, END, TURN],
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
    )
    tokenizer.train_from_iterator([TEXT], trainer)
    tokenizer.post_processor = processors.TemplateProcessing(
        single=f"{BOS} $A", special_tokens=[(BOS, 0)]
    )
    fast = transformers.PreTrainedTokenizerFast(
        tokenizer_object=tokenizer, bos_token=BOS, eos_token=END
    )
    fast.chat_template = TEMPLATE
    fast.save_pretrained(folder)
    return fast


def save_model(
    folder: Path,
    family: str = "Llama",
    seed: int = 1,
    positions: int | None = None,
    **changes: Any,
) -> Path:
    """A random model of a family, and its tokenizer.

    Args:
        positions: that the model has; None for more than tests need.
        changes: to its generation configuration.
    """
    ignore_broken_torchvision()
    tokenizer = save_tokenizer(folder)
    config = getattr(transformers, f"{family}Config")(
        vocab_size=len(tokenizer), **FAMILIES[family]
    )
    if positions is not None:
        config.max_position_embeddings = positions
    torch.manual_seed(seed)
    model = getattr(transformers, f"{family}ForCausalLM")(config)
    for name, value in changes.items():
        setattr(model.generation_config, name, value)
    model.save_pretrained(folder, safe_serialization=True)
    return folder


def write_deployment(folder: Path, model: Path) -> Path:
    """Write HELM's configuration files with one deployment, for `--local-path`."""
    name = "local/small"
    spec = {
        "class_name": "helm_longctx.models.local.huggingface.LongContextHuggingFaceClient"
    }
    arguments = {
        "pretrained_model_name_or_path": str(model),
        "chunk_size": 64,
        "reuse_prefix": True,
    }
    files: dict[str, Any] = {
        "model_deployments": [
            {
                "name": name,
                "model_name": name,
                "tokenizer_name": name,
                **WINDOW,
                "client_spec": {**spec, "args": arguments},
            }
        ],
        "models": [
            {
                "name": name,
                "display_name": "Small",
                "description": "Random.",
                "creator_organization_name": "test",
                "access": "open",
                "release_date": date(2026, 1, 1),
                "tags": ["TEXT_MODEL_TAG", "INSTRUCTION_FOLLOWING_MODEL_TAG"],
            }
        ],
        "tokenizer_configs": [
            {
                "name": name,
                "tokenizer_spec": {
                    "class_name": "helm.tokenizers.huggingface_tokenizer.HuggingFaceTokenizer",
                    "args": {"pretrained_model_name_or_path": str(model)},
                },
                "end_of_text_token": "</s>",
                "prefix_token": BOS,
            }
        ],
    }
    for key, rows in files.items():
        path = folder / {"models": "model_metadata"}.get(key, key)
        path.with_suffix(".yaml").write_text(yaml.safe_dump({key: rows}))
    return folder
