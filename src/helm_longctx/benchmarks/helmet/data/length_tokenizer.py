"""The tokenizer that HELMET measures and cuts texts with: Llama 2's, whichever model then reads them.

One tokenizer for all models means that every model gets the same text at a length.
"""

from helm_longctx.benchmarks.helmet.prompts import OMITTED
from helm_longctx.data.hub import HubFile
from helm_longctx.data.root import DataRoot
from helm_longctx.tasks.text import ESTIMATE, TextCutter, TokenCounter, read_token_counter

LLAMA_2 = HubFile(
    repo="meta-llama/Llama-2-7b-hf",
    name="tokenizer.json",
    path="tokenizers/meta-llama__Llama-2-7b-hf/tokenizer.json",
    kind="model",
    setting="HELM_LONGCTX_LLAMA2_REPO",
)
"""The repository is gated. Users without access can name another repository with the same file in the setting."""


def find_llama2_counter(root: DataRoot) -> TokenCounter:
    """Return a counter of Llama 2 tokens if the tokenizer is under the data root, else the estimate."""
    return read_token_counter(LLAMA_2.origin(root), root / LLAMA_2.path) if root.has(LLAMA_2.path) else ESTIMATE


def make_cutter(root: DataRoot, limit: int) -> TextCutter:
    """Return a cutter of texts to `limit` Llama 2 tokens.

    Raises:
        InputError: the tokenizer is not under the data root, or is not a tokenizer file.
    """
    return TextCutter(root / LLAMA_2.path, limit, OMITTED)
