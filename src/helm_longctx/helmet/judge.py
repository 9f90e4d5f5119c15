"""HELMET's judge of citations, as HELM runs it: an annotator between the answers and the metric."""

from __future__ import annotations

import logging
from pathlib import Path
from typing import Any

from helm.benchmark.adaptation.request_state import RequestState
from helm.benchmark.annotation.annotator import Annotator
from helm.clients.client import Client

from helm_longctx.core.metric import scored_record
from helm_longctx.errors import InputError
from helm_longctx.helmet import citations
from helm_longctx.helmet.data.alce import all_documents
from helm_longctx.judging.entailment import Entailment, find_entailment

_log = logging.getLogger(__name__)


class CitationAnnotator(Annotator):
    """Which cited documents support what an answer says.

    Args:
        judge: `auto` (the official NLI model where a GPU has room for it, else nobody), a HELM deployment, or an NLI
            model on the hub.
        auto_client: given by HELM, for a deployment.
        file_storage_path: given by HELM: where verdicts are kept.
    """

    name = "citations"

    def __init__(self, judge: str, auto_client: Client, file_storage_path: str):
        self._entailment = find_entailment(judge, auto_client, Path(file_storage_path))
        self._told: set[str] = set()

    def annotate(self, request_state: RequestState) -> dict[str, Any]:
        """What the metric reads; it never raises, since that would end the run. Empty if nobody judges."""
        answered = request_state.result and request_state.result.success and request_state.result.completions
        if self._entailment is None or not answered:
            return {}
        try:
            return _judged(request_state, self._entailment)
        except Exception as error:  # whatever it is, the answers are paid for
            what = str(error) if isinstance(error, InputError) else type(error).__name__
            if what not in self._told:
                _log.error("citations of %s, and maybe of others, are not judged: %s", request_state.instance.id, what)
            self._told.add(what)
            return {"failed": True}


def _judged(state: RequestState, entailment: Entailment) -> dict[str, Any]:
    record = scored_record(state)
    where = record["documents"]
    documents = all_documents(where["file"], where["item"])

    def shown(number: int) -> bool:
        return number < where["shown"] and (
            not state.prompt_truncated or documents[number]["text"] in state.request.prompt
        )

    return citations.judge_record({**record, "docs": documents}, entailment, shown)
