"""Asks blocks of questions with the runner's own parts, and says what somebody else needs to repeat a certificate."""

import hashlib
import platform
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from datetime import datetime, timezone
from importlib import metadata
from pathlib import Path
from typing import Any, NamedTuple

from helm_longctx._version import VERSION
from helm_longctx.apps.certify.answers import PLACES, Answered, AskedBlock, KeptReply
from helm_longctx.apps.certify.procedure import LimitReachedError
from helm_longctx.errors import InputError
from helm_longctx.failures import Failure
from helm_longctx.helm.command_line import make_run_specs
from helm_longctx.helm.metric import scored_record
from helm_longctx.helm.truncation import load_deployment_counter
from helm_longctx.helm_api import (
    RequestResult,
    RequestState,
    RunSpec,
    get_model_deployment,
)
from helm_longctx.interruptions import stoppable
from helm_longctx.locks import lock_run
from helm_longctx.models.apis.prices import find_prices
from helm_longctx.models.baselines.clients import LexicalClient, NullClient
from helm_longctx.models.results import answer_of
from helm_longctx.redaction.abbreviation import digest
from helm_longctx.redaction.text import redact
from helm_longctx.runner.asking import Asking, ask_all
from helm_longctx.runner.engine import PendingRequest
from helm_longctx.runner.runner import LongContextRunner
from helm_longctx.runner.sending import make_sender
from helm_longctx.runner.spending import Spending
from helm_longctx.runner.spool import Spool, StoredRequest, make_scenario
from helm_longctx.runs.journal import NAME, Journal
from helm_longctx.tasks.entry import split_entry
from helm_longctx.tasks.registry import benchmark_of
from helm_longctx.tasks.task import MAIN_METRIC, Task
from helm_longctx.tasks.token_estimate import estimate_tokens

_BASELINES = {"null": NullClient(), "lexical": LexicalClient()}


class _Question(NamedTuple):
    """A question of a block.

    Args:
        block: number of the block.
        is_first: whether it is the block's first one.
    """

    block: int
    is_first: bool
    task: Task
    request: StoredRequest


class CertificateRunner(LongContextRunner):
    """Asks the questions of a certificate. The answers stay in a journal, so that none is paid for twice.

    Args:
        entries: the run entry of each kind, without length and seed.
        model: the name of the deployment.
        folder: the folder of the journal.
        baseline_length: the length at which the baselines that need no model also answer.
        arguments: the arguments of `LongContextRunner`.

    Attributes:
        entries, model, folder, baseline_length: the arguments.
        asked: the run entries that were asked, in order.
    """

    def __init__(
        self,
        entries: Mapping[str, str],
        model: str,
        folder: Path,
        baseline_length: int,
        **arguments: Any,
    ):
        super().__init__(**arguments)
        self.entries = entries
        self.model = model
        self.folder = folder
        self.baseline_length = baseline_length
        self.asked: list[str] = []
        self._start = time.monotonic()

    @contextmanager
    def journal(self) -> Iterator[Journal]:
        """Open the journal of answers in the folder. No other process may use it meanwhile.

        Raises:
            InputError: it is damaged, or another process uses it.
        """
        spec = self._make_spec(
            f"{next(iter(self.entries.values()))},length={self.baseline_length}"
        )
        with (
            lock_run(self.folder),
            self.open_journal(spec, self.folder) as journal,
            stoppable(journal.summary),
        ):
            yield journal

    def ask(self, journal: Journal, blocks: Sequence[AskedBlock]) -> list[Answered]:
        """Ask blocks together, and return them with their replies.

        Raises:
            LimitReachedError: the limit on the cost is reached. It has the replies that have arrived.
            InputError: the model cannot be asked.
        """
        with Spool(self.folder) as spool:
            questions: list[_Question] = []
            for index, block in enumerate(blocks):
                entry = self.entry(block)
                spec = self._make_spec(entry)
                self.asked.append(entry)
                scenario = make_scenario(spec)
                for number, request in enumerate(self.adapt(spec, scenario, spool)):
                    task = scenario.benchmark.task(request.state.instance.sub_split)
                    is_first = number == 0
                    questions.append(_Question(index, is_first, task, request))
            spending = Spending(self.model, self.limit)
            sender = make_sender(self.executor.context, self.model, self.settings)
            asking = Asking(sender, journal, spending, len(questions))
            try:
                pending = []
                for question in questions:
                    pending.append(PendingRequest(question.request))
                states: list[RequestState | None] = [
                    *ask_all(pending, asking, self.parallelism)
                ]
            except InputError as error:
                if not self.limit.is_reached:
                    raise
                states = []
                for question in questions:
                    states.append(asking.recall(question.request))
                answered = self._group(blocks, questions, states)
                raise LimitReachedError(str(error), answered) from error
            return self._group(blocks, questions, states)

    def entry(self, block: AskedBlock) -> str:
        """Return the run entry that makes a block's prompts."""
        context = "" if block.has_text else ",context=none"
        if block.texts > 1:
            texts = f",texts={block.texts}"
        else:
            texts = ""
        values = f"length={block.length},seed={block.seed}{texts},num_samples={block.count}{context}"
        return f"{self.entries[block.kind]},{values}"

    def _make_spec(self, entry: str) -> RunSpec:
        text = f"{entry},model={self.model}"
        (spec,) = make_run_specs(
            [text], [], [], "certificates", 1_000_000, Path(self.output_path)
        )
        return spec

    def _group(
        self,
        blocks: Sequence[AskedBlock],
        questions: Sequence[_Question],
        states: Sequence[RequestState | None],
    ) -> list[Answered]:
        """Return the replies of each block. Questions that were not asked have none."""
        replies: list[list[KeptReply]] = [[] for _ in blocks]
        for question, state in zip(questions, states, strict=True):
            if state is not None and state.result is not None:
                reply = self._reply(
                    blocks[question.block], question, state, state.result
                )
                replies[question.block].append(reply)
        pairs = zip(blocks, replies, strict=True)
        groups = []
        for block, own_replies in pairs:
            if own_replies:
                groups.append(Answered(block, own_replies))
        return groups

    def _reply(
        self,
        block: AskedBlock,
        question: _Question,
        state: RequestState,
        result: RequestResult,
    ) -> KeptReply:
        text = question.request.text()
        about: dict[str, Any] = {
            "prompt": question.request.digest,
            "sent": estimate_tokens(text),
        }
        answer = answer_of(result)
        if answer.failure is not None:
            is_refused = answer.failure is Failure.TOO_LONG
            return KeptReply(None, answer.failure.value, refused=is_refused, **about)
        usage = answer.usage
        prices = find_prices(self.model)
        if question.is_first and block.has_text:
            count = load_deployment_counter(self.model)
            if count:
                about["tokenized"] = count(text)
        floors = None
        if block.has_text and block.length == self.baseline_length:
            floors = self._floors(question)
        scores = question.task.scores(scored_record(state, question.request.sample))
        return KeptReply(
            scores[MAIN_METRIC],
            is_cut=answer.is_any_cut,
            places=tuple(scores[place] for place in PLACES if place in scores),
            counted=usage.input_tokens if usage else None,
            dollars=prices.dollars(usage) if prices and usage else None,
            model=answer.served_model,
            floors=floors,
            answer=digest(answer.output),
            **about,
        )

    def _floors(self, question: _Question) -> dict[str, float]:
        """Return the scores of the baselines. They read the prompt in this process."""
        request = question.request.whole()
        scores = {}
        for name, client in _BASELINES.items():
            state = replace(question.request.state, result=client.make_request(request))
            record = scored_record(state, question.request.sample)
            scores[name] = question.task.scores(record)[MAIN_METRIC]
        return scores

    def describe(self) -> dict[str, Any]:
        """Return the endpoint, versions, prices, run entries and hashes, as JSON data without secrets."""
        deployment = get_model_deployment(self.model)
        prices = find_prices(self.model)
        arguments = deployment.client_spec.args or {}
        versions = {
            "helm-longctx": VERSION,
            "crfm-helm": metadata.version("crfm-helm"),
            "python": platform.python_version(),
        }
        for entry in self.entries.values():
            benchmark = benchmark_of(split_entry(entry)[0])
            revision = f"{benchmark.revision}, comparability {benchmark.comparability}"
            versions[benchmark.name] = revision
        journal = self.folder / NAME
        journal_sha256 = None
        if journal.exists():
            journal_sha256 = hashlib.sha256(journal.read_bytes()).hexdigest()
        return {
            "model": self.model,
            "served_model": arguments.get("model"),
            "address": redact(str(arguments.get("base_url") or "")),
            "client": deployment.client_spec.class_name,
            "tokenizer": deployment.tokenizer_name,
            "made": datetime.now(timezone.utc).isoformat(timespec="seconds"),
            "seconds": round(time.monotonic() - self._start, 1),
            "spent_by_this_command": self.limit.spent,
            "prices": prices.source if prices else None,
            "versions": versions,
            "entries": list(self.asked),
            "journal_sha256": journal_sha256,
        }
