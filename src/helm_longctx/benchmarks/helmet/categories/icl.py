"""ICL: classification with many demonstrations."""

from functools import partial

from helm_longctx.benchmarks.helmet import prompts, scoring
from helm_longctx.benchmarks.helmet.categories.common import STOP_VARIANTS, make_task, sizes
from helm_longctx.benchmarks.helmet.data.icl import Split, load_icl, named_splits, split_tenth
from helm_longctx.data.hub import HubDataset
from helm_longctx.tasks.benchmark import Category
from helm_longctx.tasks.task import Baseline, Task
from helm_longctx.tasks.template import Template


def _icl(name: str, title: str, hub: HubDataset, label: str, num_labels: int, split: Split, *shots: int) -> Task:
    return make_task(
        name=name,
        title=title,
        template=Template(prompts.ICL_USER, prompts.ICL_PREFIX),
        sizes=sizes(*shots),
        unit="shots",
        load=partial(load_icl, label=label, num_labels=num_labels, split=split),
        score=scoring.score_icl,
        headline=("exact_match",),
        metrics=scoring.ANSWER_METRICS,
        max_tokens=20,
        num_samples=500,
        sources=lambda length: (hub,),
        arguments=("shots", "seed", "labels"),
        variants=STOP_VARIANTS,
        baseline=Baseline("label", "0"),
    )


_TREC = HubDataset("CogComp/trec", {"train": 5452, "test": 500})
_BANKING = HubDataset("PolyAI/banking77", {"train": 10003, "test": 3080})
_CLINIC = HubDataset("clinc_oos", {"train": 15250, "validation": 3100}, config="plus", repo="clinc/clinc_oos")
_NLU = HubDataset("xingkunliuxtracta/nlu_evaluation_data", {"train": 25715})
_TEST = named_splits("train", "test")
_VALIDATION = named_splits("train", "validation")

ICL = (
    _icl("trec_coarse", "TREC Coarse", _TREC, "coarse_label", 6, _TEST, 200, 400, 800, 1600, 3300, 6600),
    _icl("trec_fine", "TREC Fine", _TREC, "fine_label", 50, _TEST, 200, 400, 800, 1600, 3200, 6400),
    _icl("banking77", "BANKING77", _BANKING, "label", 77, _TEST, 180, 360, 720, 1450, 2900, 5900),
    _icl("clinic150", "CLINIC150", _CLINIC, "intent", 151, _VALIDATION, 220, 440, 880, 1750, 3525, 7050),
    _icl("nlu", "NLU", _NLU, "label", 68, split_tenth, 250, 510, 1020, 2040, 4080, 8296),
)

CATEGORY = Category("icl", "ICL", ICL)
