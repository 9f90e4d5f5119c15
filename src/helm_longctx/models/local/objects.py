"""Models of transformers that are loaded already, and given to `helm_longctx.evaluate`."""

from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from helm.tokenizers.huggingface_tokenizer import WrappedPreTrainedTokenizer

from helm_longctx.helm_api import BlackHoleCacheConfig
from helm_longctx.models.local.huggingface import (
    CHUNK_SIZE,
    LongContextHuggingFaceClient,
)
from helm_longctx.models.local.model import LocalModel
from helm_longctx.models.local.weights import check_weights
from helm_longctx.models.objects import Gatherer, find_object


@dataclass(frozen=True, eq=False)
class TransformersModel:
    """A loaded model of transformers with its tokenizer, instead of the weights of a local deployment.

    Args:
        model: a causal language model.
        tokenizer: a fast tokenizer of transformers.
        batch: most prompts that are answered together; 1 for one after the other.
    """

    model: Any
    tokenizer: Any
    batch: int = 1
    _modes: dict[str, bool] = field(default_factory=dict, init=False)

    @property
    def path(self) -> str:
        """The name or the folder from which the model was loaded."""
        return self.model.config.name_or_path or type(self.model).__name__

    @property
    def commit(self) -> str | None:
        """The commit of the hub from which the model was loaded."""
        return getattr(self.model.config, "_commit_hash", None)

    @property
    def dtype(self) -> str:
        """The type of the weights."""
        return str(self.model.dtype)

    @property
    def attn_implementation(self) -> str | None:
        """The implementation of attention."""
        return getattr(self.model.config, "_attn_implementation", None)

    @property
    def window(self) -> int | None:
        """The number of positions for which the model was made."""
        return getattr(self.model.config, "max_position_embeddings", None)

    @cached_property
    def _local(self) -> LocalModel:
        check_weights(self.model, self.path)
        for name, module in self.model.named_modules():
            self._modes[name] = module.training
        # A user can have patched the attention.
        return LocalModel(self.model.eval(), keeps_attention=True)

    def load(self) -> LocalModel:
        """Return the model as local deployments use it.

        Raises:
            ModelError: a weight is not a finite number.
        """
        return self._local

    def free(self) -> None:
        """Do nothing, because the model is the user's."""

    def close(self) -> None:
        """Let each part of the model train again if it did. A program can have frozen some of them."""
        for name, module in self.model.named_modules():
            mode = self._modes.get(name, module.training)
            # Adapters can do more than set a flag, so their own method is called.
            if module.training != mode:
                module.train(mode)


class TransformersClient(LongContextHuggingFaceClient):
    """The client of local deployments, with a model that is loaded already, and without a cache."""

    def __init__(self, deployment: str):
        super(LongContextHuggingFaceClient, self).__init__(
            cache_config=BlackHoleCacheConfig()
        )
        loaded: TransformersModel = find_object(deployment)
        # Other clients load weights; this is the model itself.
        self._weights = loaded  # type: ignore[assignment]
        self._tokenizer = WrappedPreTrainedTokenizer(loaded.tokenizer)
        self._chunk_size = CHUNK_SIZE
        self._reuse_prefix = True
        self.concurrency = loaded.batch
        self._gatherer = Gatherer(
            lambda jobs: loaded.load().generate_all(jobs, loaded.batch), loaded.batch
        )
