"""A prepared run: everything that it needs before the model is asked, and the answers afterwards.

Prompts that cannot fit the model's window are found before anything is sent. A server would refuse all of them.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from helm_longctx.errors import InputError, describe_count
from helm_longctx.helm.truncation import deployment_window
from helm_longctx.helm_api import RequestState, RunSpec, Scenario, get_model_deployment
from helm_longctx.helm_log import helm_log
from helm_longctx.models.apis.sending import Sender
from helm_longctx.runner import prefixes
from helm_longctx.runner.asking import Asking, ask_all
from helm_longctx.runner.engine import PendingRequest
from helm_longctx.runner.programs import ProgramAsking, check_programs, has_programs
from helm_longctx.runner.spending import Spending
from helm_longctx.runner.spool import Spool, StoredRequest
from helm_longctx.runs.journal import Journal
from helm_longctx.tasks.entry import ADAPTER_METHOD, Entry
from helm_longctx.tasks.token_estimate import estimate_tokens

_FEWEST = 0.6
"""Fewest tokens of a prompt that fills its length, relative to the length. Tokenizers of today make about 0.8."""

_SURE = 0.9
"""Share of an estimate of English text that the text certainly has."""


class WindowError(InputError):
    """No prompt of a run fits the model's window."""


def may_exceed(entry: Entry, deployment: str) -> bool:
    """Whether an entry's length says that its prompts may not fit, and they are not cut for lack of a tokenizer."""
    window = deployment_window(deployment)
    length = entry.settings.length
    has_tokenizer = bool(get_model_deployment(deployment).tokenizer_name)
    return bool(window and length and not has_tokenizer) and _FEWEST * (length or 0) > (
        window or 0
    )


def check_window(requests: Sequence[StoredRequest], deployment: str) -> None:
    """Raise a `WindowError` if not even the shortest prompt fits the window that the deployment or its server names."""
    window = deployment_window(deployment)
    shortest = min(requests, key=lambda request: request.characters, default=None)
    if window is None or shortest is None or shortest.sample.method:
        return
    if shortest.sample.prompt_tokens or shortest.state.prompt_truncated:
        return
    # The estimate for other scripts can be far too high.
    estimate = estimate_tokens(shortest.text().encode("ascii", "ignore").decode())
    tokens = max(int(_SURE * estimate), shortest.sample.fewest_tokens or 0)
    if tokens + shortest.request.max_tokens > window:
        raise WindowError(
            f"the window of {deployment} has {window:,} tokens, and each of the"
            f" {len(requests)} prompts has at least {tokens:,} and up to"
            f" {shortest.request.max_tokens:,} for its answer; nothing was sent. Give a"
            " shorter length, or a tokenizer by which prompts are cut (helm-longctx"
            " run: --tokenizer), or the window if it is larger (--context)"
        )


@dataclass(frozen=True)
class PreparedRun:
    """Everything that a run needs before the model is asked.

    Args:
        journal: the answers from earlier commands.
        spending: adds up what the requests cost.
        spool: holds the whole prompts.
        requests: the requests in HELM's order.
    """

    spec: RunSpec
    path: Path
    scenario: Scenario
    sender: Sender
    journal: Journal
    spending: Spending
    spool: Spool
    requests: list[StoredRequest]
    parallelism: int

    @property
    def is_ours(self) -> bool:
        """Whether the scenario is of this package. HELM's own runs have whole prompts in their files."""
        return self.spec.adapter_spec.method == ADAPTER_METHOD

    @cached_property
    def _keys(self) -> list[prefixes.PrefixDigests]:
        return prefixes.prefix_keys(request.text() for request in self.requests)

    def order(self) -> list[int]:
        """Return the numbers of the requests in an order in which a prefix, or a function's context, is reused."""
        order = prefixes.order_by_prefix(self._keys)
        if not self.sender.takes_facts:
            return order
        # Contexts can differ within the last step of their prefixes, or be shorter than one.
        places: dict[str, int] = {}
        return sorted(
            order,
            key=lambda number: places.setdefault(
                self.requests[number].context_digest(), len(places)
            ),
        )

    def beginnings(
        self,
        numbers: Sequence[int],
        pays: prefixes.Pays,
    ) -> list[prefixes.SharedPrefix | None]:
        """Return the beginnings that requests share with each other; see `cacheable_beginnings`."""
        keys: list[prefixes.PrefixDigests] = [[]] * len(numbers)
        if self.sender.caches_prompts:
            keys = [self._keys[number] for number in numbers]
        requests = [self.requests[number] for number in numbers]
        return prefixes.cacheable_beginnings(requests, keys, pays)

    def name(self, asked: StoredRequest) -> str:
        """Return the name of a request in the journal."""
        return self.journal.name(asked.request, asked.digest)

    def ask(self) -> list[RequestState]:
        """Send requests without an answer, and return the states of all with their results, in HELM's order.

        Raises an `InputError` at a limit, or if the model cannot be asked.
        """
        total = len(self.requests)
        order = self.order()
        if has_programs(self.requests):
            check_programs(self.requests, self.sender)
            beginnings: list[prefixes.SharedPrefix | None] = [None] * total
            asking: Asking = ProgramAsking(
                sender=self.sender,
                journal=self.journal,
                spending=self.spending,
                total=total,
                folder=self.path,
            )
        else:
            beginnings = self.beginnings(
                range(total), prefixes.caching_pays(self.spending.prices)
            )
            asking = Asking(
                sender=self.sender,
                journal=self.journal,
                spending=self.spending,
                total=total,
            )
        with helm_log.block(describe_count(total, "request")):
            helm_log.info(
                self.path.name
            )  # `helm-longctx run` shows the messages of this package, but not HELM's "Running …"
            pending = []
            for number in order:
                pending.append(
                    PendingRequest(self.requests[number], beginnings[number])
                )
            width = max(self.parallelism, self.sender.concurrency)
            answered = dict(zip(order, ask_all(pending, asking, width), strict=True))
            asking.finish()
            return [answered[number] for number in range(total)]
