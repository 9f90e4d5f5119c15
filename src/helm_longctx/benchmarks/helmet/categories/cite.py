"""Cite: answers with citations of documents."""

from helm_longctx.benchmarks.helmet import citations, prompts, records
from helm_longctx.benchmarks.helmet.categories.common import make_task, sizes
from helm_longctx.benchmarks.helmet.data import alce
from helm_longctx.benchmarks.helmet.release import release_file, repository_file
from helm_longctx.data.wheel import SENTENCE_MODEL
from helm_longctx.tasks.benchmark import Category
from helm_longctx.tasks.judge_scores import TRUE_NLI
from helm_longctx.tasks.task import Baseline, Scorer, Task
from helm_longctx.tasks.template import Template

_CITE_SIZES = sizes(8, 30, 75, 165, 345, 700, most=2000)

_PROMPT_FILES = {
    "asqa_revised": "99ebb9d7371895dc352a7f9135ef9e84c3757a9d9d4ce2091b4e2b1d7c39299c",
    "asqa_nocite": "512b525835de1d2d610334d31d002ffa9396474ac141c31ad12adec8d121ac8f",
    "qampari_revised": "d73e184ec6d9fd6ba821ea1e537d2dec96be602aa693706862acc1b3d9586104",
    "qampari_nocite": "0f2c2762e5a96031004c4220e3f3c9b65f6359b5fc44187ef687ae7127a8f4a1",
}
"""Files with instructions and demonstrations in HELMET's repository, and their SHA-256."""


def _cite(name: str, title: str, correct: str, score: Scorer, metrics: tuple[str, ...]) -> Task:
    data, _, plain = name.partition("_")
    prompt = name if plain else f"{name}_revised"
    return make_task(
        name=name,
        title=title,
        template=Template(prompts.CITE_USER, prompts.CITE_PREFIX, separator="\n\n"),
        sizes=_CITE_SIZES,
        unit="documents",
        load=alce.load_alce,
        score=score,
        headline=(correct,) if plain else (correct, *citations.OFFICIAL),
        metrics=metrics if plain else (*metrics, *citations.METRICS),
        max_tokens=600 if plain else 300,
        shots=0 if plain else 2,
        sources=lambda length: (
            release_file(f"alce/{data}_eval_gtr_top2000.json"),
            repository_file(f"prompts/{prompt}.json", _PROMPT_FILES[prompt]),
        ),
        chat=True,
        arguments=("shots", "seed"),
        official_judge=None if plain else TRUE_NLI,
        judge_sources={} if plain else {"sentences": SENTENCE_MODEL},
        record_shapes=records.CITATIONS[data],
        baseline=Baseline("citation", "It is not known [1]."),
    )


_ASQA = ("str_em", citations.score_asqa, citations.ASQA_METRICS)
_QAMPARI = ("qampari_rec_top5", citations.score_qampari, citations.QAMPARI_METRICS)
CITE = (_cite("asqa", "ASQA", *_ASQA), _cite("qampari", "QAMPARI", *_QAMPARI))
NOCITE = (
    _cite("asqa_nocite", "ASQA without citations", *_ASQA),
    _cite("qampari_nocite", "QAMPARI without citations", *_QAMPARI),
)

CATEGORY = Category(
    "cite", "Cite", CITE, variants=NOCITE, judge="helm_longctx.benchmarks.helmet.judge.CitationAnnotator"
)
