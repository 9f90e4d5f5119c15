"""The benchmark HELMET, and how the baseline models answer its tasks. The tasks are in `categories`."""

from __future__ import annotations

from helm_longctx.benchmarks.helmet.categories import cite, icl, longqa, passages, recall, summ
from helm_longctx.benchmarks.helmet.metrics import METRICS
from helm_longctx.benchmarks.helmet.release import COMMIT, REVISION, published_results
from helm_longctx.protocol.baseline import Baseline
from helm_longctx.protocol.benchmark import Benchmark

# The constants are answers in the right format that hold no information about the question.
_UUID = "00000000-0000-0000-0000-000000000000"
_NEEDLES = ("niah_s_1", "niah_s_2", "niah_s_3", "niah_mk_1", "niah_mk_2", "niah_mk_3", "niah_mq", "niah_mv")

BASELINES = {
    "json_kv": Baseline("lookup", _UUID),
    **{f"ruler_{name}": Baseline("lookup", "0") for name in _NEEDLES},
    **{f"ruler_{name}": Baseline("frequency", "0") for name in ("cwe", "fwe")},
    "ruler_vt": Baseline("chain", "0"),
    **{f"ruler_{name}": Baseline("span", "0") for name in ("qa_1", "qa_2")},
    **{name: Baseline("span", "the United States") for name in ("nq", "triviaqa", "hotpotqa", "popqa")},
    "msmarco": Baseline("ranking", "1 > 2 > 3"),
    **{
        name: Baseline("citation", "It is not known [1].")
        for name in ("asqa", "qampari", "asqa_nocite", "qampari_nocite")
    },
    **{name: Baseline("span", "A") for name in ("narrativeqa", "infbench_qa")},
    "infbench_choice": Baseline("choice", "A"),
    **{name: Baseline("summary", "It is a long text.") for name in ("infbench_sum", "multi_lexsum")},
    **{name: Baseline("label", "0") for name in ("trec_coarse", "trec_fine", "banking77", "clinic150", "nlu")},
}
"""How the baseline models answer each task."""

HELMET = Benchmark(
    name="helmet",
    title="HELMET",
    description="How to Evaluate Long-context Models Effectively and Thoroughly (arXiv 2410.02694)",
    revision=REVISION,
    comparability=2,
    url=f"https://github.com/princeton-nlp/HELMET/tree/{COMMIT[:7]}",
    categories=(
        recall.CATEGORY,
        passages.RAG_CATEGORY,
        icl.CATEGORY,
        cite.CATEGORY,
        passages.RERANK_CATEGORY,
        longqa.CATEGORY,
        summ.CATEGORY,
        *recall.NOT_AVERAGED,
    ),
    metrics=METRICS,
    baselines=BASELINES,
    published=published_results,
    overall="Average",
    judge_checks="helm_longctx.benchmarks.helmet.judge_check.checks",
    outputs="helm_longctx.benchmarks.helmet.outputs.READER",
    page="docs/run-entries.md",
)
