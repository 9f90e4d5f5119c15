"""Does a passage support a claim? Hub NLI models, a language model, and what they said before."""

from __future__ import annotations

import hashlib
import logging
import math
import re
import sqlite3
import threading
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

from helm_longctx.errors import InputError
from helm_longctx.extras import require
from helm_longctx.judging.judge import Judge, Question, find_judges
from helm_longctx.torchvision import ignore_broken_torchvision

if TYPE_CHECKING:
    from helm.clients.auto_client import AutoClient

Pair = tuple[str, str]
"""Passage and claim."""

Verdict = bool | None
"""None: the judge gave none."""

TRUE_NLI = "google/t5_xxl_true_nli_mixture"
"""HELMET's judge, of 11 billion parameters."""

TRUE_NLI_COMMIT = "aa6cfe1dd4257853bfdd772992045f41bfc14988"
"""The commit of the official judge that is loaded."""

TRUE_NLI_BYTES = 24 * 1024**3
"""Free GPU memory that it needs in bfloat16, with room for its inputs."""

BATCH_TOKENS = 16384
"""Padded tokens of a batch; a longer pair is a batch of its own."""

PROMPT = """Passage:
{passage}

Statement:
{claim}

Does the passage alone support all that the statement says? Answer with 1 for yes or 0 for no, and nothing else."""

_log = logging.getLogger(__name__)


class Entailment(Protocol):
    """A judge of passages and claims.

    Attributes:
        official: whether it is the benchmark's own judge.
    """

    official: bool

    @property
    def name(self) -> str:
        """What judges, with its revision where that is known."""
        ...

    def entails(self, pairs: Sequence[Pair]) -> list[Verdict]:
        """A verdict for each pair, in order."""
        ...


def find_entailment(judge: str, client: AutoClient, folder: Path) -> Entailment | None:
    """The judge that an argument names; None if nobody judges.

    Args:
        judge: `auto`, `none`, the name of a HELM deployment, or an NLI model on the hub, `name` or `name@revision`.
        client: for a deployment.
        folder: where verdicts are kept.

    Raises:
        InputError: an NLI model is named and the extra `citations` is not installed, or a deployment and `judges`.
    """
    if judge == "auto" and not _true_nli_fits():
        _log.warning("citations are not judged: no GPU has room for %s; name a judge with judge=", TRUE_NLI)
        return None
    if judge == "none":
        return None
    if is_deployment(judge):
        (asked,) = find_judges(judge, client)
        return CachedEntailment(DeploymentEntailment(asked), None)
    name = TRUE_NLI if judge == "auto" else judge
    require("citations", f"judge={name!r}")
    return CachedEntailment(HubEntailment(name), folder / "entailment.sqlite")


def is_deployment(judge: str) -> bool:
    """Whether HELM knows a judge as a deployment."""
    from helm.benchmark.model_deployment_registry import DEPLOYMENT_NAME_TO_MODEL_DEPLOYMENT as DEPLOYMENTS

    return judge in DEPLOYMENTS


def _true_nli_fits() -> bool:
    try:
        import torch
    except ImportError:
        return False
    return torch.cuda.is_available() and torch.cuda.mem_get_info()[0] >= TRUE_NLI_BYTES


class HubEntailment:
    """An NLI model on the hub: a sequence-to-sequence model that writes `1`, or a classifier with a label `entailment`.

    Loaded when it is first asked. Inputs are never cut (HELMET eval_alce.py _run_nli_autoais): a pair for which the
    model has too few positions gets no verdict.

    Args:
        model: a folder, or a hub name, with `@` and a commit, tag or branch behind it. Without it the official judge is
            loaded at its pinned commit, and another model at the newest commit of its main branch.
    """

    def __init__(self, model: str):
        self._folder = Path(model) if Path(model).is_dir() else None
        self._model, _, self._revision = (model, "", "") if self._folder else model.partition("@")
        if self._model == TRUE_NLI:
            self._revision = self._revision or TRUE_NLI_COMMIT
        self.official = (self._model, self._revision) == (TRUE_NLI, TRUE_NLI_COMMIT)
        self._lock = threading.Lock()
        self._loaded: _Nli | InputError | None = None

    @cached_property
    def name(self) -> str:
        """The model with its commit, a folder with a digest; the model alone if nobody knows its commit."""
        return "@".join(filter(None, (self._model, self._version)))

    @cached_property
    def _version(self) -> str | None:
        # Without the weights: verdicts that are kept are found by it, and then nothing need be loaded.
        return _digest(self._folder) if self._folder else _commit(self._model, self._revision)

    def entails(self, pairs: Sequence[Pair]) -> list[Verdict]:
        """A verdict for each pair.

        Raises:
            InputError: the model cannot be loaded, or is no NLI model.
        """
        with self._lock:  # HELM's annotators run in threads
            if isinstance(self._loaded, InputError):
                raise self._loaded
            if self._loaded is None:
                self._load()
            assert isinstance(self._loaded, _Nli)
            verdicts = self._loaded.entails(pairs)
        if long := verdicts.count(None):
            _log.warning("%s: %d of %d pairs are too long for it", self.name, long, len(verdicts))
        return verdicts

    def _load(self) -> None:
        try:
            self._loaded = _load(self._model, self._version)
        except InputError as error:
            self._loaded = error  # the next instance need not try again
            raise


class _Nli:
    """A loaded model."""

    def __init__(self, model: Any, tokenizer: Any, entailed: int | None):
        self.model, self.tokenizer, self.entailed = model, tokenizer, entailed
        self.longest = _positions(model)

    def entails(self, pairs: Sequence[Pair]) -> list[Verdict]:
        verdicts: list[Verdict] = [None] * len(pairs)
        inputs = [self._encoded(pair) for pair in pairs]
        lengths = [len(encoded["input_ids"]) for encoded in inputs]
        # A position that a model lacks is an error of the whole batch, and on a GPU of all that comes after it.
        fitting = [i for i, length in enumerate(lengths) if length <= self.longest]
        for batch in _batches([lengths[i] for i in fitting]):
            places = [fitting[i] for i in batch]
            padded = self.tokenizer.pad([inputs[i] for i in places], return_tensors="pt").to(self.model.device)
            for i, verdict in zip(places, self._verdicts(padded), strict=True):
                verdicts[i] = verdict
        return verdicts

    def _encoded(self, pair: Pair) -> Any:
        if self.entailed is None:
            return self.tokenizer("premise: {} hypothesis: {}".format(*pair))
        return self.tokenizer(*pair)

    def _verdicts(self, padded: Any) -> list[bool]:
        import torch

        with torch.inference_mode():
            if self.entailed is None:
                written = self.model.generate(**padded, max_new_tokens=10, do_sample=False)
                return [text == "1" for text in self.tokenizer.batch_decode(written, skip_special_tokens=True)]
            return [int(best) == self.entailed for best in self.model(**padded).logits.argmax(dim=-1)]


def _commit(model: str, revision: str) -> str | None:
    """The commit of a hub model's revision, or the one that was fetched last where the hub cannot be reached."""
    from huggingface_hub import hf_hub_download

    if re.fullmatch(r"[0-9a-f]{40}", revision):
        return revision
    try:
        return Path(hf_hub_download(model, "config.json", revision=revision or None)).parent.name
    except Exception:  # whatever it is, it comes again when the model is loaded
        return None


def _digest(folder: Path) -> str:
    """Another one when a file of the folder is another."""
    files = sorted((file.name, file.stat().st_size, file.stat().st_mtime_ns) for file in folder.iterdir())
    return "local-" + hashlib.sha256(repr(files).encode()).hexdigest()[:12]


def _load(name: str, version: str | None) -> _Nli:
    ignore_broken_torchvision()
    import torch
    from transformers import AutoConfig, AutoModelForSeq2SeqLM, AutoModelForSequenceClassification, AutoTokenizer

    gpu = torch.cuda.is_available()
    # A folder has no revision, and is not asked for one.
    pinned: dict[str, Any] = {"revision": version, "trust_remote_code": False}
    try:
        if version is None:
            raise LookupError("no commit is known")
        config = AutoConfig.from_pretrained(name, **pinned)
        entailed = _entailment_label(name, config)
        tokenizer = AutoTokenizer.from_pretrained(name, **pinned)  # before the weights, which can be 45 GB
        kind = AutoModelForSeq2SeqLM if entailed is None else AutoModelForSequenceClassification
        # `dtype`, the later name of `torch_dtype`, is unknown to the oldest transformers that HELM takes.
        model = kind.from_pretrained(name, **pinned, torch_dtype=torch.bfloat16 if gpu else torch.float32)
    except InputError:
        raise
    except Exception as error:  # of the hub, the disk, or a broken installation
        raise InputError(
            f"judge={name!r} is neither a deployment that HELM knows nor a model that can be loaded here"
            f" ({type(error).__name__}); see docs/citations.md"
        ) from error
    return _Nli(model.to("cuda" if gpu else "cpu").eval(), tokenizer, entailed)


def _entailment_label(name: str, config: Any) -> int | None:
    """The number of a classifier's label; None for a model that writes. Classifiers can be encoder-decoders: BART."""
    for number, label in config.id2label.items():
        if label.lower().startswith("entail"):
            return int(number)
    if config.is_encoder_decoder:
        return None
    raise InputError(f"judge={name!r} has no label 'entailment', only {', '.join(config.id2label.values())}")


def _positions(model: Any) -> float:
    """The longest input that a model has positions for; relative ones (T5, DeBERTa) have no end."""
    tables = [
        module
        for name, module in model.named_modules()
        if name.endswith(("position_embeddings", "embed_positions")) and hasattr(module, "num_embeddings")
    ]
    # RoBERTa counts positions from behind the padding's number, BART from an offset.
    unused = [getattr(t, "offset", 0 if t.padding_idx is None else t.padding_idx + 1) for t in tables]
    return min((t.num_embeddings - skipped for t, skipped in zip(tables, unused, strict=True)), default=math.inf)


def _batches(lengths: Sequence[int]) -> Iterator[list[int]]:
    """Numbers of pairs of about the same length, so many that their padded tokens fit."""
    batch: list[int] = []
    for number in sorted(range(len(lengths)), key=lambda i: lengths[i]):
        if batch and lengths[number] * (len(batch) + 1) > BATCH_TOKENS:
            yield batch
            batch = []
        batch.append(number)
    if batch:
        yield batch


class DeploymentEntailment:
    """A language model as judge of passages and claims."""

    official = False
    parallel = 4

    def __init__(self, judge: Judge):
        self.name, self._judge = judge.name, judge

    def entails(self, pairs: Sequence[Pair]) -> list[Verdict]:
        """A verdict for each pair; None where no call succeeded, or no reply began with 1 or 0."""
        with ThreadPoolExecutor(self.parallel) as pool:
            verdicts = list(pool.map(self._verdict, pairs))
        if failed := verdicts.count(None):
            _log.warning("%s: no verdict on %d of %d pairs", self.name, failed, len(verdicts))
        return verdicts

    def _verdict(self, pair: Pair) -> Verdict:
        passage, claim = pair
        prompt = PROMPT.format(passage=passage, claim=claim)
        verdict = self._judge.ask(Question(prompt, _read, max_tokens=16, temperature=0.0, top_p=1.0, seed=0)).verdict
        return verdict["entails"] if verdict else None


def _read(reply: str) -> dict[str, bool] | None:
    # What may follow the first word is an explanation that nobody asked for.
    first = (reply.split() or [""])[0].rstrip(".")
    return {"entails": first == "1"} if first in ("0", "1") else None


class CachedEntailment:
    """Asks another judge only what it was not asked before.

    Args:
        judge: the other one.
        path: a file that keeps verdicts for later runs; None to keep them in memory. Passages are not kept.
    """

    def __init__(self, judge: Entailment, path: Path | None):
        self._judge, self.official = judge, judge.official
        self._lock = threading.Lock()
        if path:
            path.parent.mkdir(parents=True, exist_ok=True)
        self._database = sqlite3.connect(path or ":memory:", check_same_thread=False, timeout=60)
        self._database.execute("CREATE TABLE IF NOT EXISTS verdicts (key TEXT PRIMARY KEY, entailed INTEGER)")

    @property
    def name(self) -> str:
        """The other judge's."""
        return self._judge.name

    def entails(self, pairs: Sequence[Pair]) -> list[Verdict]:
        """A verdict for each pair; missing ones are asked for again the next time."""
        keys = [self._key(pair) for pair in pairs]
        known = self._known(keys)
        new = {key: pair for key, pair in zip(keys, pairs, strict=True) if key not in known}
        given = dict(zip(new, self._judge.entails(list(new.values())), strict=True)) if new else {}
        self._keep({key: verdict for key, verdict in given.items() if verdict is not None})
        return [known.get(key, given.get(key)) for key in keys]

    def _key(self, pair: Pair) -> str:
        parts = (self._judge.name, *pair)
        return hashlib.sha256("\0".join(parts).encode("utf-8", "surrogatepass")).hexdigest()

    def _known(self, keys: Sequence[str]) -> dict[str, bool]:
        with self._lock:
            rows = [
                self._database.execute("SELECT key, entailed FROM verdicts WHERE key = ?", (key,)).fetchone()
                for key in dict.fromkeys(keys)
            ]
        return {row[0]: bool(row[1]) for row in rows if row}

    def _keep(self, verdicts: dict[str, bool]) -> None:
        with self._lock, self._database:
            self._database.executemany("INSERT OR REPLACE INTO verdicts VALUES (?, ?)", verdicts.items())
