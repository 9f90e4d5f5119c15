"""RAG: questions about passages. Re-rank: passages that are ranked by their relevance to a query."""

from functools import partial

from helm_longctx.benchmarks.helmet import asking, prompts, records, scoring
from helm_longctx.benchmarks.helmet.categories.common import STOP_VARIANTS, make_task, sizes
from helm_longctx.benchmarks.helmet.data import passages
from helm_longctx.benchmarks.helmet.release import release_file
from helm_longctx.data.release import ReleaseFile
from helm_longctx.tasks.benchmark import Category
from helm_longctx.tasks.task import Baseline, Loader, Task
from helm_longctx.tasks.template import Template

_RAG_SIZES = sizes(20, 50, 105, 220, 440, 1000, most=1000)


def _rag(name: str, title: str, test: str, demos: str, depths: int, load: Loader) -> Task:
    def sources(length: int) -> tuple[ReleaseFile, ...]:
        # Demonstrations have three passages each at every length (HELMET configs: `k3`).
        files = (test.format(k=_RAG_SIZES[length]), demos.format(k=3))
        return tuple(release_file(f"kilt/{file}_dep{depths}.jsonl") for file in files)

    return make_task(
        name=name,
        title=title,
        template=Template(prompts.QA_USER, prompts.QA_PREFIX),
        sizes=_RAG_SIZES,
        unit="passages",
        load=load,
        score=scoring.score_qa,
        headline=("substring_exact_match",),
        metrics=scoring.ANSWER_METRICS,
        max_tokens=20,
        depths=depths,
        shots=2,
        sources=sources,
        arguments=("shots", "seed", "context"),
        variants=STOP_VARIANTS,
        baseline=Baseline("span", "the United States"),
        reasoning=asking.REASONING,
        question_only=asking.QUESTION,
    )


def _kilt(name: str, title: str, depths: int = 6) -> Task:
    test, demos = (f"{name}-{split}-multikilt_1000_k{{k}}" for split in ("dev", "train"))
    return _rag(name, title, test, demos, depths, passages.load_qa)


_POPQA = "popqa_test_1000_k{k}"
_load_popqa = partial(passages.load_qa, popularity=3.0, demos_from_test=True)
RAG = (
    _kilt("nq", "NQ"),
    _kilt("triviaqa", "TriviaQA"),
    _kilt("hotpotqa", "HotpotQA", depths=3),
    _rag("popqa", "PopQA", _POPQA, _POPQA, 6, _load_popqa),
)

_RERANK_SIZES = sizes(14, 50, 130, 285, 600, 1000, most=1000)
_MSMARCO = "msmarco/test_reranking_data_k{k}_dep3.jsonl"
RERANK = (
    make_task(
        name="msmarco",
        title="MS MARCO",
        template=Template(prompts.RERANK_USER, prompts.RERANK_PREFIX),
        sizes=_RERANK_SIZES,
        unit="passages",
        load=passages.load_rerank,
        score=scoring.score_rerank,
        record_shapes=records.RANKING,
        headline=("NDCG@10",),
        metrics=scoring.RANKING_METRICS,
        max_tokens=200,
        depths=3,
        shots=2,
        # The second file has the demonstrations, with ten passages each.
        sources=lambda length: tuple(release_file(_MSMARCO.format(k=k)) for k in (_RERANK_SIZES[length], 10)),
        arguments=("shots", "seed"),
        variants=STOP_VARIANTS,
        baseline=Baseline("ranking", "1 > 2 > 3"),
    ),
)

RAG_CATEGORY = Category("rag", "RAG", RAG)
RERANK_CATEGORY = Category("rerank", "Re-rank", RERANK)
