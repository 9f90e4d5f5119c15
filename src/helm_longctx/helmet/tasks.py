"""HELMET's tasks: the one table that everything else is derived from.

Sizes, budgets and sample sizes: princeton-nlp/HELMET at 4526dfb, scripts/generate_configs.py (4k to 128k). Beyond
128k the sizes go on in proportion; those lengths have no published numbers.
"""

from __future__ import annotations

from functools import partial

from helm_longctx.core.lengths import STANDARD
from helm_longctx.core.task import Benchmark, Task
from helm_longctx.core.template import Template
from helm_longctx.helmet import prompts, scoring
from helm_longctx.helmet.data import generate
from helm_longctx.helmet.data.icl import Split, load_icl, split_named, split_tenth
from helm_longctx.helmet.data.recall import load_json_kv, load_niah
from helm_longctx.sources.hub import HubDataset

REVISION = "princeton-nlp/HELMET@4526dfb"


def sizes(*official: int) -> dict[int, int]:
    """Units for 4k, 8k, … 128k, then in proportion up to 1m."""
    lengths = list(STANDARD.values())
    beyond = [official[-1] * length // lengths[len(official) - 1] for length in lengths[len(official) :]]
    return dict(zip(lengths, [*official, *beyond], strict=True))


def _niah(name: str, title: str, folder: str, make: generate.Maker, max_tokens: int, template: Template) -> Task:
    return Task(
        name=name,
        category="recall",
        title=title,
        template=template,
        sizes={length: length for length in STANDARD.values()},
        unit="tokens",
        load=partial(load_niah, make=make),
        score=scoring.score_ruler,
        headline="ruler_recall",
        metrics=("ruler_recall",),
        max_tokens=max_tokens,
        answer_kind="lookup",
        null_answer="0",
        file=lambda length: f"helmet/ruler/{folder}/validation_{length}.jsonl",
        any_length=True,
    )


_NIAH = Template(prompts.NIAH_USER, prompts.NIAH_PREFIX)
_NIAH_MULTI = Template(prompts.NIAH_MULTI_USER, prompts.NIAH_MULTI_PREFIX)
_PAIRS = sizes(50, 105, 220, 440, 900, 1800)

RECALL = (
    Task(
        name="json_kv",
        category="recall",
        title="JSON KV",
        template=Template(prompts.JSON_KV_USER, prompts.JSON_KV_PREFIX),
        sizes=_PAIRS,
        unit="pairs",
        load=load_json_kv,
        score=scoring.score_json_kv,
        headline="substring_exact_match",
        metrics=scoring.ANSWER_METRICS,
        max_tokens=100,
        answer_kind="lookup",
        null_answer="00000000-0000-0000-0000-000000000000",
        shots=2,
        file=lambda length: f"helmet/json_kv/test_k{_PAIRS.get(length, 0)}_dep6.jsonl",
        any_length=True,
    ),
    _niah("ruler_niah_mk_2", "RULER MK Needle", "niah_multikey_2", generate.niah_words, 50, _NIAH),
    _niah("ruler_niah_mk_3", "RULER MK UUID", "niah_multikey_3", generate.niah_uuids, 100, _NIAH),
    _niah("ruler_niah_mv", "RULER MV", "niah_multivalue", generate.niah_values, 50, _NIAH_MULTI),
)


def _icl(name: str, title: str, hub: HubDataset, label: str, num_labels: int, split: Split, *shots: int) -> Task:
    return Task(
        name=name,
        category="icl",
        title=title,
        template=Template(prompts.ICL_USER, prompts.ICL_PREFIX),
        sizes=sizes(*shots),
        unit="shots",
        load=partial(load_icl, label=label, num_labels=num_labels, split=split),
        score=scoring.score_icl,
        headline="exact_match",
        metrics=scoring.ANSWER_METRICS,
        max_tokens=20,
        answer_kind="label",
        null_answer="0",
        num_samples=500,
        hub=hub,
        stop=("\n",),
        labels=True,
    )


_TREC = HubDataset("CogComp/trec", {"train": 5452, "test": 500})
_BANKING = HubDataset("PolyAI/banking77", {"train": 10003, "test": 3080})
_CLINIC = HubDataset("clinc_oos", {"train": 15250, "validation": 3100}, config="plus", repo="clinc/clinc_oos")
_NLU = HubDataset("xingkunliuxtracta/nlu_evaluation_data", {"train": 25715})
_TEST = split_named("train", "test")
_VALIDATION = split_named("train", "validation")

ICL = (
    _icl("trec_coarse", "TREC Coarse", _TREC, "coarse_label", 6, _TEST, 200, 400, 800, 1600, 3300, 6600),
    _icl("trec_fine", "TREC Fine", _TREC, "fine_label", 50, _TEST, 200, 400, 800, 1600, 3200, 6400),
    _icl("banking77", "BANKING77", _BANKING, "label", 77, _TEST, 180, 360, 720, 1450, 2900, 5900),
    _icl("clinic150", "CLINIC150", _CLINIC, "intent", 151, _VALIDATION, 220, 440, 880, 1750, 3525, 7050),
    _icl("nlu", "NLU", _NLU, "label", 68, split_tenth, 250, 510, 1020, 2040, 4080, 8296),
)

HELMET = Benchmark(
    name="helmet",
    title="HELMET",
    description="How to Evaluate Long-context Models Effectively and Thoroughly (arXiv 2410.02694)",
    revision=REVISION,
    url="https://github.com/princeton-nlp/HELMET/tree/4526dfb",
    tasks=(*RECALL, *ICL),
    categories={"recall": "Recall", "icl": "ICL"},
)
