"""Judges whether a passage supports a claim: NLI models of the hub, language models, and a cache of verdicts.

A verdict is True (the passage supports the claim), False (it does not), or None (the judge gave no verdict).
"""

from __future__ import annotations

import hashlib
import logging
import math
import re
import sqlite3
import threading
from abc import abstractmethod
from collections.abc import Iterator, Sequence
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from helm_longctx.environment import (
    dtype_argument,
    ignore_broken_torchvision,
    page_address,
    require,
)
from helm_longctx.errors import InputError
from helm_longctx.helm_api import DEPLOYMENT_NAME_TO_MODEL_DEPLOYMENT
from helm_longctx.judging.judge import Judge, JudgeRequest, find_judges
from helm_longctx.models.apis.calls import call_all
from helm_longctx.models.local.folders import digest_folder
from helm_longctx.redaction.logs import warn_once
from helm_longctx.tasks.judge_scores import TRUE_NLI

if TYPE_CHECKING:
    from helm_longctx.helm_api import AutoClient

Pair = tuple[str, str]
"""A passage and a claim."""

TRUE_NLI_COMMIT = "aa6cfe1dd4257853bfdd772992045f41bfc14988"
"""Commit of the official judge that this package pins."""

TRUE_NLI_BYTES = 24 * 1024**3
"""Free GPU memory in bytes that the official judge needs in bfloat16, with room for its inputs."""

_BATCH_TOKENS = 16384
"""Largest number of tokens in a padded batch. A longer pair is a batch of its own."""

PROMPT = """Passage:
{passage}

Statement:
{claim}

Does the passage alone support all that the statement says? Answer with 1 for yes or 0 for no, and nothing else."""

_log = logging.getLogger(__name__)


def find_entailment(
    judge: str,
    client: AutoClient,
    folder: Path,
) -> EntailmentJudge | None:
    """Create the judge that a `judge=` argument names, None for no judge, or raise an `InputError`."""
    if judge == "auto" and not gpu_has_room(TRUE_NLI_BYTES):
        _log.warning(
            "citations are not judged: no GPU has room for %s; name a judge with judge=",
            TRUE_NLI,
        )
        return None
    if judge == "none":
        return None
    # HELM's names first: a deployment and a hub model can have the same `org/name`.
    if is_deployment(judge):
        (deployment,) = find_judges(judge, client)
        # HELM's request cache already stores the replies of deployments.
        return DeploymentEntailment(deployment)
    name = TRUE_NLI if judge == "auto" else judge
    require("citations", f"judge={name!r}")
    return CachedEntailment(HubEntailment(name), folder / "entailment.sqlite")


def is_deployment(judge: str) -> bool:
    """Return whether `judge` is the name of a HELM deployment."""
    return judge in DEPLOYMENT_NAME_TO_MODEL_DEPLOYMENT


def gpu_has_room(needed: int) -> bool:
    """Return whether a GPU has so many bytes of free memory."""
    try:
        import torch
    except ImportError:
        return False
    return torch.cuda.is_available() and torch.cuda.mem_get_info()[0] >= needed


class HubModel:
    """A model in a folder, or `name` or `name@revision` on the hub. It is loaded on first use."""

    def __init__(self, model: str):
        self._folder = Path(model) if Path(model).is_dir() else None
        if self._folder:
            self._model = model
            self._revision = ""
        else:
            self._model, _, self._revision = model.partition("@")
        self._lock = threading.Lock()
        self._loaded: Any = None

    @cached_property
    def name(self) -> str:
        """The model with its commit, or for a folder with a digest. The model alone if its commit is unknown."""
        return "@".join(filter(None, (self._model, self._version)))

    @cached_property
    def _version(self) -> str | None:
        # The version is determined without the weights: if a cache has all results under this name, no model need be
        # loaded.
        if self._folder:
            return f"local-{digest_folder(self._folder)}"
        return find_commit(self._model, self._revision)

    def _find(self) -> Any:
        """Return the loaded model, or raise the `InputError` of the first attempt. The caller has the lock."""
        if self._loaded is None:
            try:
                self._loaded = self._load()
            except InputError as error:
                self._loaded = error  # every answer asks for the model, and each attempt to load it can take minutes
        if isinstance(self._loaded, InputError):
            raise self._loaded
        return self._loaded

    @abstractmethod
    def _load(self) -> Any:
        """Load the model. Raises an `InputError` if it cannot be loaded."""


class HubEntailment(HubModel):
    """An NLI model of the hub: a sequence-to-sequence model that writes `1`, or a classifier with a label `entailment`.

    Inputs are never truncated (HELMET eval_alce.py _run_nli_autoais): a pair that is
    longer than the model's positions gets no verdict.

    Without a revision the official judge is loaded at its pinned commit.
    """

    def __init__(self, model: str):
        super().__init__(model)
        # The official model is pinned, because a change of it would change scores without notice.
        if self._model == TRUE_NLI:
            self._revision = self._revision or TRUE_NLI_COMMIT
        self.official = (self._model, self._revision) == (TRUE_NLI, TRUE_NLI_COMMIT)

    def entails(self, pairs: Sequence[Pair]) -> list[bool | None]:
        """Judge each pair, None for one that is too long, or raise an `InputError` without an NLI model."""
        with self._lock:  # HELM runs annotators in several threads
            model: _NliModel = self._find()
            verdicts = model.entails(pairs)
        if long := verdicts.count(None):
            _log.warning(
                "%s: %d of %d pairs are too long for it", self.name, long, len(verdicts)
            )
        return verdicts

    def _load(self) -> _NliModel:
        ignore_broken_torchvision()
        import torch
        from transformers import (
            AutoConfig,
            AutoModelForSeq2SeqLM,
            AutoModelForSequenceClassification,
            AutoTokenizer,
        )

        gpu = torch.cuda.is_available()
        # transformers ignores the revision if the name is a folder.
        options: dict[str, Any] = {
            "revision": self._version,
            "trust_remote_code": False,
        }
        try:
            if self._version is None:
                raise LookupError("the commit is unknown")
            config = AutoConfig.from_pretrained(self._model, **options)
            entailed = _entailment_label(self._model, config)
            # The tokenizer comes first: if it cannot be loaded, weights of up to 45 GB need not be downloaded.
            tokenizer = AutoTokenizer.from_pretrained(self._model, **options)
            kind: Any = AutoModelForSeq2SeqLM
            if entailed is not None:
                kind = AutoModelForSequenceClassification
            options[dtype_argument()] = torch.bfloat16 if gpu else torch.float32
            model = kind.from_pretrained(self._model, **options)
        except InputError:
            raise
        except (
            Exception
        ) as error:  # errors of the hub, the disk, or a broken installation
            raise InputError(
                f"judge={self._model!r} is neither a HELM deployment nor a model that"
                f" can be loaded on this machine ({type(error).__name__}); see"
                f" {page_address('judges#citations')}"
            ) from error
        return _NliModel(model.to("cuda" if gpu else "cpu").eval(), tokenizer, entailed)


def _count_positions(table: Any) -> int:
    """Return how many tokens a table of position embeddings has room for."""
    # RoBERTa's positions begin after the number of the padding token, BART's after an offset.
    unused = 0 if table.padding_idx is None else table.padding_idx + 1
    return int(table.num_embeddings - getattr(table, "offset", unused))


class _NliModel:
    """A loaded NLI model. `entailed` is its label for entailment, or None for a model that writes its verdict."""

    def __init__(
        self,
        model: Any,
        tokenizer: Any,
        entailed: int | None,
    ):
        self.model = model
        self.tokenizer = tokenizer
        self.entailed = entailed
        # The longest input in tokens for which the model has positions; relative positions (T5) have no limit.
        # Models with several tables (encoder and decoder) are limited by the smallest.
        self.longest: float = math.inf
        for name, module in model.named_modules():
            is_table = name.endswith(("position_embeddings", "embed_positions"))
            if is_table and hasattr(module, "num_embeddings"):
                self.longest = min(self.longest, _count_positions(module))

    def entails(self, pairs: Sequence[Pair]) -> list[bool | None]:
        import torch

        verdicts: list[bool | None] = [None] * len(pairs)
        # The official words (HELMET eval_alce.py _run_nli_autoais).
        form = "premise: {} hypothesis: {}"
        inputs = []
        for pair in pairs:
            if self.entailed is not None:
                inputs.append(self.tokenizer(pair[0], pair[1]))
            else:
                inputs.append(self.tokenizer(form.format(pair[0], pair[1])))
        lengths = [len(encoded["input_ids"]) for encoded in inputs]
        # An input beyond the model's positions makes the whole batch fail, and on a GPU all later calls too.
        fitting = []
        for i, length in enumerate(lengths):
            if length <= self.longest:
                fitting.append(i)
        for batch in _batches([lengths[i] for i in fitting]):
            indices = [fitting[i] for i in batch]
            encoded = [inputs[index] for index in indices]
            padded = self.tokenizer.pad(encoded, return_tensors="pt").to(
                self.model.device
            )
            with torch.inference_mode():
                if self.entailed is None:
                    # The official max_new_tokens; exactly "1" is entailment there, too.
                    written = self.model.generate(
                        **padded, max_new_tokens=10, do_sample=False
                    )
                    replies = self.tokenizer.batch_decode(
                        written, skip_special_tokens=True
                    )
                    are_entailed = [reply == "1" for reply in replies]
                else:
                    labels = self.model(**padded).logits.argmax(dim=-1)
                    are_entailed = [int(label) == self.entailed for label in labels]
            for index, is_entailed in zip(indices, are_entailed, strict=True):
                verdicts[index] = is_entailed
        return verdicts


def find_commit(model: str, revision: str) -> str | None:
    """Look up the commit of a hub model's revision. Without a connection it is the one in the hub's local cache."""
    from huggingface_hub import hf_hub_download

    if re.fullmatch(r"[0-9a-f]{40}", revision):
        return revision
    try:
        return Path(
            hf_hub_download(model, "config.json", revision=revision or None)
        ).parent.name
    except Exception:  # loading the model fails for the same reason and reports it
        return None


def _entailment_label(name: str, config: Any) -> int | None:
    """Return the number of a classifier's label for entailment, or None for a model that writes its verdict."""
    # The labels come first, because a classifier can be an encoder-decoder too (BART).
    for number, label in config.id2label.items():
        if label.lower().startswith("entail"):
            return int(number)
    if config.is_encoder_decoder:
        return None
    raise InputError(
        f"judge={name!r} has no label 'entailment', only {', '.join(config.id2label.values())}"
    )


def _batches(lengths: Sequence[int]) -> Iterator[list[int]]:
    """Group pairs of similar length into batches of at most `_BATCH_TOKENS` padded tokens; yield their numbers."""
    batch: list[int] = []
    # Pairs are sorted by length, so that they need little padding. The last pair added to a batch is its longest.
    for number in sorted(range(len(lengths)), key=lambda i: lengths[i]):
        if batch and lengths[number] * (len(batch) + 1) > _BATCH_TOKENS:
            yield batch
            batch = []
        batch.append(number)
    if batch:
        yield batch


class DeploymentEntailment:
    """A language model of a HELM deployment as judge of passages and claims."""

    official = False
    parallel = 4

    def __init__(self, judge: Judge):
        self.name = judge.name
        self._judge = judge

    def entails(self, pairs: Sequence[Pair]) -> list[bool | None]:
        """Judge each pair, and equal pairs once. A verdict is None if no call succeeded or no reply began with 1 or 0."""
        different = list(dict.fromkeys(pairs))
        judged = call_all(self._verdict, different, self.parallel)
        by_pair = dict(zip(different, judged, strict=True))
        verdicts = [by_pair[pair] for pair in pairs]
        if failed := verdicts.count(None):
            _log.warning(
                "%s: no verdict on %d of %d pairs", self.name, failed, len(verdicts)
            )
        return verdicts

    def _verdict(self, pair: Pair) -> bool | None:
        prompt = PROMPT.format(passage=pair[0], claim=pair[1])
        request = JudgeRequest(
            prompt,
            _parse_reply,
            max_tokens=16,
            temperature=0.0,
            top_p=1.0,
            seed=0,
        )
        verdict = self._judge.ask(request).verdict
        return verdict["entails"] if verdict else None


def _parse_reply(reply: object) -> dict[str, bool] | None:
    # Some models add an explanation after the first word although they were told not to.
    words = reply.split(maxsplit=1) if isinstance(reply, str) else []
    first = words[0].rstrip(".") if words else ""
    if first in ("0", "1"):
        return {"entails": first == "1"}
    return None


class CachedEntailment:
    """Wraps a judge with a cache of its verdicts. A file stores them for later runs, without passages."""

    def __init__(self, judge: HubEntailment, path: Path):
        self._judge = judge
        self.official = judge.official
        self._lock = threading.Lock()
        self._path = path
        path.parent.mkdir(parents=True, exist_ok=True)
        # Several threads use the connection, one at a time under the lock; 60 seconds are for other processes' writes.
        self._database = sqlite3.connect(path, check_same_thread=False, timeout=60)
        self._database.execute(
            "CREATE TABLE IF NOT EXISTS verdicts (key TEXT PRIMARY KEY, entailed INTEGER)"
        )

    @property
    def name(self) -> str:
        """Name of the wrapped judge."""
        return self._judge.name

    def entails(self, pairs: Sequence[Pair]) -> list[bool | None]:
        """Judge each pair. Pairs without a verdict are not stored, so the next call asks for them again."""
        keys = []
        for pair in pairs:
            text = "\0".join((self._judge.name, *pair))
            keys.append(
                hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()
            )
        stored: dict[str, bool] = {}
        select = "SELECT key, entailed FROM verdicts WHERE key = ?"
        with self._lock:
            for key in dict.fromkeys(keys):
                row = self._database.execute(select, (key,)).fetchone()
                if row:
                    stored[key] = bool(row[1])
        # New pairs are collected by key, so that a pair that occurs several times in one call is judged once.
        new = {}
        for key, pair in zip(keys, pairs, strict=True):
            if key not in stored:
                new[key] = pair
        verdicts: dict[str, bool | None] = {}
        if new:
            # Judging takes minutes, so it happens outside the lock. Two threads may judge the same pair. Both
            # verdicts are equal.
            verdicts = dict(
                zip(new, self._judge.entails(list(new.values())), strict=True)
            )
        known = []
        for key, verdict in verdicts.items():
            if verdict is not None:
                known.append((key, verdict))
        self._store(known)
        return [stored.get(key, verdicts.get(key)) for key in keys]

    def _store(self, verdicts: Sequence[tuple[str, bool]]) -> None:
        """Store verdicts. On a full disk they are only used, because they took minutes."""
        try:
            with self._lock, self._database:
                self._database.executemany(
                    "INSERT OR REPLACE INTO verdicts VALUES (?, ?)", verdicts
                )
        except sqlite3.OperationalError as error:
            warn_once(f"verdicts are not kept for later runs: {self._path}: {error}")


EntailmentJudge = HubEntailment | DeploymentEntailment | CachedEntailment
