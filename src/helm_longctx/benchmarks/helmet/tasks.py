"""The benchmark HELMET. The tasks are in `categories`."""

from functools import partial

from helm_longctx.benchmarks.helmet.categories import cite, icl, longqa, passages, recall, summ
from helm_longctx.benchmarks.helmet.release import published_results
from helm_longctx.benchmarks.helmet.scoring import RANKING_CUTS
from helm_longctx.tasks.benchmark import Metric
from helm_longctx.tasks.benchmark_file import read_benchmark
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
_RANKINGS = {
    "NDCG": "Normalized discounted cumulative gain of the ranking, by trec_eval.",
    "MAP": "Mean average precision of the ranking, by trec_eval.",
    "Recall": "Share of the relevant passages that the ranking contains, by trec_eval.",
    "P": "Share of the ranking's passages that are relevant, by trec_eval.",
}

HELMET = read_benchmark(
    __package__,
    (*_AVERAGED, *recall.NOT_AVERAGED),
    metrics=[
        Metric(f"{name}@{cut}", f"{name}@{cut}", f"{about} The ranking is cut at rank {cut}.")
        for name, about in _RANKINGS.items()
        for cut in RANKING_CUTS
    ],
    data=SENTENCE_TERMS,
    published=partial(published_results, _AVERAGED),
)
