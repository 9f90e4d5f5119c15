"""Attention for a prompt that a processor reads in chunks.

A chunk after the first sees all tokens before it, and of its own tokens only those up to the current one. transformers
describes this by a mask of the chunk's tokens and all tokens so far. With a mask, PyTorch computes the whole rectangle,
reads the mask in each layer, and converts it there from true and false to numbers. At 8k this takes 1.6 times as long
as the causal kernel for the whole prompt. Here the two parts are computed apart, neither of them with a mask, and
merged by their sums of exponentials, as Flash-Decoding does (https://crfm.stanford.edu/2023/10/12/flashdecoding.html).
"""

from typing import Any

NAME = "helm_longctx_sdpa"
"""The attention's name in the registries of transformers."""


def use_in(model: Any) -> None:
    """Let a model attend to chunks in two parts, if it runs on a processor with PyTorch's attention (sdpa).

    A model on a GPU, with another attention, or of a transformers without these registries stays as it is.
    """
    import torch

    on_processor = (
        model.device.type == "cpu" and model.config._attn_implementation == "sdpa"
    )
    if not (
        on_processor
        and hasattr(torch.ops.aten, "_scaled_dot_product_flash_attention_for_cpu")
    ):
        return
    try:
        from transformers import AttentionInterface
        from transformers.masking_utils import AttentionMaskInterface
    except ImportError:  # of an older version
        return
    AttentionInterface.register(NAME, attend)
    AttentionMaskInterface.register(NAME, _make_mask)
    if hasattr(model, "set_attn_implementation"):
        model.set_attn_implementation(NAME)


def _make_mask(**options: Any) -> Any:
    """Return the mask that transformers makes for sdpa, or None if the tokens only have to be in their order.

    Args:
        options: arguments of `transformers.masking_utils.sdpa_mask`.
    """
    from transformers.masking_utils import sdpa_mask

    is_plain = (
        options.get("allow_is_causal_skip", True) and options.get("local_size") is None
    )
    if is_plain and options.get("attention_mask") is None:
        return None
    return sdpa_mask(**options)


def attend(
    module: Any,
    query: Any,
    key: Any,
    value: Any,
    attention_mask: Any,
    **options: Any,
) -> tuple[Any, None]:
    """Return the outputs of a layer's attention: batch × tokens × heads × size.

    Args:
        module: the layer.
        query: batch × heads × tokens of the chunk × size.
        key, value: batch × key heads × all tokens so far × size.
        attention_mask: None if each token sees all tokens up to itself.
        options: further arguments of `sdpa_attention_forward` of transformers.
    """
    import torch
    from transformers.integrations.sdpa_attention import sdpa_attention_forward

    groups = query.shape[1] // key.shape[1]
    if (
        len(query) > 1
        and query.shape[2] == 1
        and groups > 1
        and attention_mask is not None
    ):
        # The heads that share keys are rows of one product. With a mask transformers would copy all keys for each.
        rows = query.reshape(len(query), key.shape[1], groups, query.shape[3])
        output = torch.nn.functional.scaled_dot_product_attention(
            rows, key, value, attention_mask, scale=options.get("scaling")
        )
        return output.reshape(len(query), 1, query.shape[1], value.shape[3]), None
    past = key.shape[2] - query.shape[2]
    is_causal = (
        getattr(module, "is_causal", True) and options.get("is_causal") is not False
    )
    if attention_mask is not None or past <= 0 or query.shape[2] == 1 or not is_causal:
        return sdpa_attention_forward(
            module, query, key, value, attention_mask, **options
        )
    if (
        query.shape[3] != value.shape[3] or options.get("position_bias") is not None
    ):  # the kernel has neither
        last = torch.arange(past, key.shape[2])
        end = torch.arange(key.shape[2])
        # The mask has a row for each of the chunk's tokens, and a column for each token so far.
        mask = (last[:, None] >= end)[None, None].to(query.device)
        return sdpa_attention_forward(module, query, key, value, mask, **options)
    return _merge(query, key, value, past, options.get("scaling")).transpose(
        1, 2
    ).contiguous(), None


def _merge(
    query: Any,
    key: Any,
    value: Any,
    past: int,
    scale: float | None,
) -> Any:
    """Attend to the tokens before the chunk and to its own, and average by the exponentials' sums."""
    import torch

    groups = query.shape[1] // key.shape[1]
    if groups > 1:
        key = key.repeat_interleave(groups, 1)
        value = value.repeat_interleave(groups, 1)
    kernel = torch.ops.aten._scaled_dot_product_flash_attention_for_cpu
    before, sum_before = kernel(
        query, key[:, :, :past], value[:, :, :past], 0.0, False, scale=scale
    )
    own, sum_own = kernel(
        query, key[:, :, past:], value[:, :, past:], 0.0, True, scale=scale
    )
    return torch.lerp(
        before, own, torch.sigmoid(sum_own - sum_before).unsqueeze(-1).to(own.dtype)
    )
