"""The benchmark HELMET. The tasks are in `categories`."""

from __future__ import annotations

from functools import partial

from helm_longctx.benchmarks.helmet.categories import cite, icl, longqa, passages, recall, summ
from helm_longctx.benchmarks.helmet.metrics import METRICS
from helm_longctx.benchmarks.helmet.release import COMMIT, REVISION, published_models, published_results
from helm_longctx.tasks.benchmark import Benchmark, Terms
from helm_longctx.tasks.publications import read_protocols
from helm_longctx.tasks.sentences import SENTENCE_TERMS

_AVERAGED = (
    recall.CATEGORY,
    passages.RAG_CATEGORY,
    icl.CATEGORY,
    cite.CATEGORY,
    passages.RERANK_CATEGORY,
    longqa.CATEGORY,
    summ.CATEGORY,
)
_PUBLISHED = partial(published_results, _AVERAGED)

HELMET = Benchmark(
    name="helmet",
    title="HELMET",
    leads=True,
    description="How to Evaluate Long-context Models Effectively and Thoroughly (arXiv 2410.02694)",
    revision=REVISION,
    comparability=2,
    url=f"https://github.com/princeton-nlp/HELMET/tree/{COMMIT[:7]}",
    data={
        "https://huggingface.co/datasets/princeton-nlp/HELMET": Terms(
            "not stated; each data set in it has its own", "11 GB, of which only the needed files are stored"
        ),
        "https://github.com/princeton-nlp/HELMET": Terms("MIT"),
        "https://huggingface.co/meta-llama/Llama-2-7b-hf": Terms("Llama 2 Community License", "2 MB"),
        "https://huggingface.co/datasets/CogComp/trec": Terms("not stated"),
        "https://huggingface.co/datasets/PolyAI/banking77": Terms("CC-BY-4.0"),
        "https://huggingface.co/datasets/clinc/clinc_oos": Terms("CC-BY-3.0"),
        "https://huggingface.co/datasets/xingkunliuxtracta/nlu_evaluation_data": Terms("CC-BY-4.0"),
        "https://huggingface.co/datasets/deepmind/narrativeqa": Terms("Apache-2.0"),
        "https://huggingface.co/datasets/xinrongzhang2022/InfiniteBench": Terms("MIT"),
        # Source: README.md of github.com/multilexsum/dataset at 3bfcdc5.
        "https://huggingface.co/datasets/allenai/multi_lexsum": Terms(
            "ODC-By; CC-BY-NC-4.0 for the summaries and the metadata"
        ),
        **SENTENCE_TERMS,
    },
    categories=(*_AVERAGED, *recall.NOT_AVERAGED),
    metrics=METRICS,
    published=_PUBLISHED,
    models=published_models,
    protocols=partial(read_protocols, __package__, _PUBLISHED),
    overall="Average",
    judge_checks="helm_longctx.benchmarks.helmet.judge_check.checks",
    outputs="helm_longctx.benchmarks.helmet.outputs.READER",
)
