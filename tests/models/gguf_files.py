"""Writes GGUF files of small Llama models, with the layout of llama.cpp's converter."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from gguf import GGUFWriter, TokenType
from tokenizers import Tokenizer, models, pre_tokenizers, trainers

from helm_longctx.environment import ignore_broken_torchvision

ignore_broken_torchvision()
import torch  # noqa: E402
from transformers import LlamaConfig, LlamaForCausalLM  # noqa: E402

BOS = "<s>"
END = "</s>"

NAMES = {
    "self_attn.q_proj": "attn_q",
    "self_attn.k_proj": "attn_k",
    "self_attn.v_proj": "attn_v",
    "self_attn.o_proj": "attn_output",
    "mlp.gate_proj": "ffn_gate",
    "mlp.up_proj": "ffn_up",
    "mlp.down_proj": "ffn_down",
    "input_layernorm": "attn_norm",
    "post_attention_layernorm": "ffn_norm",
}
"""Names of a layer's tensors in transformers and in llama.cpp."""

OTHERS = {
    "model.embed_tokens": "token_embd",
    "model.norm": "output_norm",
    "lm_head": "output",
}

CONFIG = {
    "hidden_size": 64,
    "intermediate_size": 96,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "max_position_embeddings": 512,
}


def train_bpe(text: str) -> tuple[list[str], list[str]]:
    """Return the tokens and the merges of a byte-level BPE for a text, with two special tokens at the start."""
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    alphabet = pre_tokenizers.ByteLevel.alphabet()
    tokenizer.train_from_iterator(
        [text],
        trainers.BpeTrainer(
            vocab_size=330, special_tokens=[BOS, END], initial_alphabet=alphabet
        ),
    )
    vocabulary = tokenizer.get_vocab()
    import json

    merges = json.loads(tokenizer.to_str())["model"]["merges"]
    return sorted(vocabulary, key=vocabulary.__getitem__), [
        " ".join(merge) for merge in merges
    ]


def train_model(tokens: list[int], size: int) -> Any:
    """Return a small Llama that knows a sequence of tokens by heart."""
    torch.manual_seed(0)
    model = LlamaForCausalLM(
        LlamaConfig(vocab_size=size, bos_token_id=0, eos_token_id=1, **CONFIG)
    )
    optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
    ids = torch.tensor([tokens])
    for _ in range(25):
        optimizer.zero_grad()
        model(input_ids=ids, labels=ids).loss.backward()
        optimizer.step()
    return model.eval()


def write_gguf(
    path: Path, model: Any, tokens: list[str], merges: list[str], rule: str = "smollm"
) -> Path:
    """Write a model and its tokenizer.

    Args:
        rule: the rule by which the tokenizer splits a text (`tokenizer.ggml.pre`).
    """
    writer = GGUFWriter(path, "llama")
    config = model.config
    writer.add_block_count(config.num_hidden_layers)
    writer.add_context_length(config.max_position_embeddings)
    writer.add_embedding_length(config.hidden_size)
    writer.add_feed_forward_length(config.intermediate_size)
    writer.add_head_count(config.num_attention_heads)
    writer.add_head_count_kv(config.num_key_value_heads)
    writer.add_layer_norm_rms_eps(config.rms_norm_eps)
    writer.add_rope_dimension_count(config.head_dim)
    writer.add_vocab_size(config.vocab_size)
    writer.add_tokenizer_model("gpt2")
    writer.add_tokenizer_pre(rule)
    writer.add_token_list(tokens)
    writer.add_token_types(
        [
            TokenType.CONTROL if token in (BOS, END) else TokenType.NORMAL
            for token in tokens
        ]
    )
    writer.add_token_merges(merges)
    writer.add_bos_token_id(0)
    writer.add_eos_token_id(1)
    writer.add_add_bos_token(True)
    writer.add_chat_template("{% for m in messages %}{{ m['content'] }}{% endfor %}")
    for name, tensor in model.state_dict().items():
        writer.add_tensor(
            _rename(name), _permute(name, tensor.detach(), config).float().numpy()
        )
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    return path


def _rename(name: str) -> str:
    stem = name.removesuffix(".weight")
    if stem in OTHERS:
        return f"{OTHERS[stem]}.weight"
    _, _, layer, part = stem.split(".", 3)
    return f"blk.{layer}.{NAMES[part]}.weight"


def _permute(name: str, tensor: Any, config: Any) -> Any:
    """Order the rows of queries and keys as llama.cpp does, whose rotary positions pair neighbours."""
    heads = {
        "q_proj": config.num_attention_heads,
        "k_proj": config.num_key_value_heads,
    }.get(name.split(".")[-2])
    if heads is None:
        return tensor
    return (
        tensor.reshape(heads, 2, -1, tensor.shape[1])
        .transpose(1, 2)
        .reshape(tensor.shape)
        .contiguous()
    )
