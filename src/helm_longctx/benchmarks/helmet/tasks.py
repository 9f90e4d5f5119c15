"""HELMET's tasks, by category.

Source of sizes, output budgets and sample sizes in all categories: princeton-nlp/HELMET at 4526dfb,
scripts/generate_configs.py (4k to 128k). Beyond 128k the sizes grow in proportion, as far as there is data. There are
no published numbers for those lengths.
"""

from functools import partial
from itertools import product

from helm_longctx.benchmarks.helmet import asking, citations, prompts, scoring, verdicts
from helm_longctx.benchmarks.helmet.data import books, passages, recall
from helm_longctx.benchmarks.helmet.data.icl import (
    SplitTexts,
    load_icl,
    named_splits,
    split_tenth,
)
from helm_longctx.benchmarks.helmet.data.recall import load_json_kv, load_ruler
from helm_longctx.benchmarks.helmet.release import (
    LLAMA_2,
    published_results,
    release_file,
    repository_file,
)
from helm_longctx.benchmarks.helmet.verdicts import JUDGE
from helm_longctx.data.wheel import SENTENCE_MODEL
from helm_longctx.tasks import (
    STANDARD,
    Baseline,
    Category,
    HubDataset,
    HubFile,
    Metric,
    ReleaseFile,
    Task,
    Template,
    Variant,
    read_benchmark,
    sizes_in_tokens,
)
from helm_longctx.tasks.judge_scores import REPLIES, TRUE_NLI
from helm_longctx.tasks.sentences import SENTENCE_TERMS
from helm_longctx.tasks.task import AnswerKind, Loader, ProtocolArgument

_STOP_VARIANTS: dict[ProtocolArgument, Variant] = {
    "paper": Variant(),
    "current": Variant(stop=("\n",)),
}
"""The published completions have no stop sequence. Since 2025-08 the official code stops them at a newline."""

_MOST_GENERATED = 10_000
"""Most examples of a generated task: a hundred times the official sample."""

_make_task = partial(Task, prefix_scored=True)
"""Makes a task of HELMET. It puts the answer prefix before a completion's output when it scores it (eval.py:101)."""

_OFFICIAL = [STANDARD[label] for label in ("4k", "8k", "16k", "32k", "64k", "128k")]


def sizes(*official: int, most: int | None = None) -> dict[int, int]:
    """Return the sizes for all lengths: the official ones for 4k, 8k, … 128k, then in proportion up to 1m.

    Args:
        most: number of units that the data has. Lengths that need more are left out.
    """
    beyond = []
    for length in STANDARD.values():
        if length > _OFFICIAL[-1]:
            beyond.append(length)
    # HELMET has no configuration beyond 128k at this commit, so there is nothing official to follow.
    further = {}
    for length in beyond:
        further[length] = official[-1] * length // _OFFICIAL[-1]
    sizes_to_128k = dict(zip(_OFFICIAL, official, strict=True))
    sizes = sizes_to_128k
    for length, units in further.items():
        if most is None or units <= most:
            sizes[length] = units
    return sizes


def _text_sizes(max_tokens: int, around: int = 200) -> dict[int, int]:
    """Return the number of tokens of text at each length.

    `around` tokens are left for the rest of the prompt. There is no length above 128k, because the texts need not be
    longer.
    """
    sizes = {}
    for length in _OFFICIAL:
        sizes[length] = length - around - max_tokens
    return sizes


def _official_file(length: int, path: str) -> tuple[ReleaseFile, ...]:
    """Return the source of a file of the release; none at lengths that the release does not have."""
    if length in _OFFICIAL:
        return (release_file(path),)
    return ()


def _infbench_file(split: str) -> HubFile:
    """Return the source of a split of InfiniteBench."""
    path = f"hub/xinrongzhang2022__infinitebench/{split}.jsonl"
    commit = "90f0394333616266d9fe85824ceaf505093cbaa5"
    return HubFile(
        "xinrongzhang2022/InfiniteBench", f"{split}.jsonl", path, commit=commit
    )


_JSON_KV_SIZES = sizes(50, 105, 220, 440, 900, 1800)
JSON_KV = _make_task(
    name="json_kv",
    title="JSON KV",
    template=Template(prompts.JSON_KV_USER, prompts.JSON_KV_PREFIX),
    sizes=_JSON_KV_SIZES,
    unit="pairs",
    load=load_json_kv,
    score=scoring.score_json_kv,
    headline=("substring_exact_match",),
    metrics=scoring.ANSWER_METRICS,
    max_tokens=100,
    shots=2,
    optional_sources=lambda length: _official_file(
        length, f"json_kv/test_k{_JSON_KV_SIZES.get(length)}_dep6.jsonl"
    ),
    any_length=True,
    generated="without_files",
    arguments=("shots", "seed"),
    most_samples=_MOST_GENERATED,
    baseline=Baseline("lookup", "00000000-0000-0000-0000-000000000000"),
)

_NEEDLE = Template(prompts.NIAH_USER, prompts.NIAH_PREFIX)
_NEEDLES = Template(prompts.NIAH_MULTI_USER, prompts.NIAH_MULTI_PREFIX)
_CHAIN = Template(prompts.VT_USER, prompts.VT_PREFIX)
_COMMON = Template(prompts.CWE_USER, prompts.CWE_PREFIX)
_FREQUENT = Template(prompts.FWE_USER, prompts.FWE_PREFIX)
_DOCUMENTS = Template(prompts.RULER_QA_USER, prompts.RULER_QA_PREFIX)
_ANSWERS: dict[Template, AnswerKind] = {
    _CHAIN: "chain",
    _COMMON: "frequency",
    _FREQUENT: "frequency",
    _DOCUMENTS: "span",
}


def _ruler(
    name: str,
    title: str,
    folder: str,
    make: recall.Maker,
    max_tokens: int,
    template: Template = _NEEDLE,
    has_depth: bool = True,
) -> Task:
    # RULER's question answering is scored like HELMET's other questions, the rest by recall of the answers.
    is_qa = template is _DOCUMENTS
    return _make_task(
        name=f"ruler_{name}",
        title=title,
        template=template,
        sizes=sizes_in_tokens(),
        unit="tokens",
        load=partial(load_ruler, make=make, has_depth=has_depth),
        score=scoring.score_qa if is_qa else scoring.score_ruler,
        headline=("substring_exact_match",) if is_qa else ("ruler_recall",),
        metrics=scoring.ANSWER_METRICS if is_qa else ("ruler_recall",),
        max_tokens=max_tokens,
        # The file is optional, because rows are generated without it.
        optional_sources=lambda length: _official_file(
            length, f"ruler/{folder}/validation_{length}.jsonl"
        ),
        any_length=True,
        generated="without_files",
        arguments=("seed",),
        most_samples=_MOST_GENERATED,
        baseline=Baseline(_ANSWERS.get(template, "lookup"), "0"),
    )


_prose = partial(partial, recall.hide_needles, haystack="prose")
_needles = partial(partial, recall.hide_needles, haystack="needles")

_NIAH = _ruler("niah_s_2", "NIAH", "niah_single_2", _prose(), 50)
MK_2 = _ruler("niah_mk_2", "RULER MK Needle", "niah_multikey_2", _needles(), 50)
MK_3 = _ruler(
    "niah_mk_3", "RULER MK UUID", "niah_multikey_3", _needles(kind="uuids"), 100
)
MV = _ruler("niah_mv", "RULER MV", "niah_multivalue", _prose(values=4), 50, _NEEDLES)
RULER = (
    _ruler("niah_s_1", "NIAH Repeat", "niah_single_1", _needles(haystack="noise"), 50),
    _NIAH,
    _ruler("niah_s_3", "NIAH UUID", "niah_single_3", _prose(kind="uuids"), 50),
    _ruler("niah_mk_1", "RULER MK Essay", "niah_multikey_1", _prose(keys=4), 50),
    MK_2,
    MK_3,
    _ruler(
        "niah_mq",
        "RULER MQ",
        "niah_multiquery",
        _prose(keys=4, queries=4),
        100,
        _NEEDLES,
    ),
    MV,
    _ruler("cwe", "RULER CWE", "cwe", recall.common_words, 100, _COMMON, False),
    _ruler("fwe", "RULER FWE", "fwe", recall.frequent_words, 50, _FREQUENT, False),
    _ruler("vt", "RULER VT", "vt", recall.variable_tracking, 50, _CHAIN, False),
    _ruler("qa_1", "RULER SQuAD", "qa_1", recall.one_hop_questions, 50, _DOCUMENTS),
    _ruler("qa_2", "RULER HotpotQA", "qa_2", recall.two_hop_questions, 50, _DOCUMENTS),
)

_RECALL = Category("recall", "Recall", (JSON_KV, MK_2, MK_3, MV))
# HELMET's average leaves these two out. They were only used to study the correlation of tasks.
_RULER = Category("ruler", "RULER", RULER, averaged=False)
_NOT_AVERAGED = (_RULER, Category("niah", "NIAH", (_NIAH,), averaged=False))


_RAG_SIZES = sizes(20, 50, 105, 220, 440, 1000, most=1000)


def _rag(
    name: str,
    title: str,
    test: str,
    demos: str,
    depths: int,
    load: Loader,
) -> Task:
    def sources(length: int) -> tuple[ReleaseFile, ...]:
        # Demonstrations have three passages each at every length (HELMET configs: `k3`).
        files = (test.format(k=_RAG_SIZES[length]), demos.format(k=3))
        return tuple(release_file(f"kilt/{file}_dep{depths}.jsonl") for file in files)

    return _make_task(
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
        variants=_STOP_VARIANTS,
        baseline=Baseline("span", "the United States"),
        reasoning=asking.REASONING,
        question_only=asking.QUESTION,
    )


def _kilt(name: str, title: str, depths: int = 6) -> Task:
    test, demos = (
        f"{name}-{split}-multikilt_1000_k{{k}}" for split in ("dev", "train")
    )
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
    _make_task(
        name="msmarco",
        title="MS MARCO",
        template=Template(prompts.RERANK_USER, prompts.RERANK_PREFIX),
        sizes=_RERANK_SIZES,
        unit="passages",
        load=passages.load_rerank,
        score=scoring.score_rerank,
        can_read=scoring.can_read_ranking,
        record_shapes=scoring.RANKING,
        headline=("NDCG@10",),
        metrics=scoring.RANKING_METRICS,
        max_tokens=200,
        depths=3,
        shots=2,
        # The second file has the demonstrations, with ten passages each.
        sources=lambda length: tuple(
            release_file(_MSMARCO.format(k=k)) for k in (_RERANK_SIZES[length], 10)
        ),
        arguments=("shots", "seed"),
        variants=_STOP_VARIANTS,
        baseline=Baseline("ranking", "1 > 2 > 3"),
    ),
)

_RAG = Category("rag", "RAG", RAG)
_RERANK = Category("rerank", "Re-rank", RERANK)


def _icl(
    name: str,
    title: str,
    hub: HubDataset,
    label: str,
    num_labels: int,
    split: SplitTexts,
    shots: dict[int, int],
) -> Task:
    return _make_task(
        name=name,
        title=title,
        template=Template(prompts.ICL_USER, prompts.ICL_PREFIX),
        sizes=shots,
        unit="shots",
        load=partial(
            load_icl,
            label=label,
            num_labels=num_labels,
            split=split,
        ),
        score=scoring.score_icl,
        headline=("exact_match",),
        metrics=scoring.ANSWER_METRICS,
        max_tokens=20,
        num_samples=500,
        sources=lambda length: (hub,),
        arguments=("shots", "seed", "labels"),
        variants=_STOP_VARIANTS,
        baseline=Baseline("label", "0"),
    )


_TREC = HubDataset(
    "CogComp/trec",
    {"train": 5452, "test": 500},
    # The digests of the hub's conversion. It has commits of its own.
    sha256={
        "default/train/0000.parquet": "5ffb07b1cbd45e47b4dd1dd113dadd19e44eb260721114c6147e0ce6c1e47590",
        "default/test/0000.parquet": "6aa889b0289e02760644caa22ac9aa833e79e34fb1f1ced69f745a078550c56e",
    },
)
_BANKING = HubDataset(
    "PolyAI/banking77",
    {"train": 10003, "test": 3080},
    commit="1fb62b1bb4635df59a8e1b2f2bc5e0643b2856c8",
)
_CLINIC = HubDataset(
    "clinc_oos",
    {"train": 15250, "validation": 3100},
    config="plus",
    repo="clinc/clinc_oos",
    commit="155b9c710419136e17307b80d0a13e68cd46b4ec",
    sha256={
        "plus/train-00000-of-00001.parquet": "30188119cf9f86fc9db27e1c22442d091cb5cb0913c9496f945fe11e7a02a28f",
        "plus/validation-00000-of-00001.parquet": "fbd545b46c611c4a7ba4b48cae6c7f09bb5b59f33ff56206ad1cd366c85cdfaa",
    },
)
_NLU = HubDataset("xingkunliuxtracta/nlu_evaluation_data", {"train": 25715})
_TEST = named_splits("train", "test")
_VALIDATION = named_splits("train", "validation")

ICL = (
    _icl(
        name="trec_coarse",
        title="TREC Coarse",
        hub=_TREC,
        label="coarse_label",
        num_labels=6,
        split=_TEST,
        shots=sizes(200, 400, 800, 1600, 3300, 6600),
    ),
    _icl(
        name="trec_fine",
        title="TREC Fine",
        hub=_TREC,
        label="fine_label",
        num_labels=50,
        split=_TEST,
        shots=sizes(200, 400, 800, 1600, 3200, 6400),
    ),
    _icl(
        name="banking77",
        title="BANKING77",
        hub=_BANKING,
        label="label",
        num_labels=77,
        split=_TEST,
        shots=sizes(180, 360, 720, 1450, 2900, 5900),
    ),
    _icl(
        name="clinic150",
        title="CLINIC150",
        hub=_CLINIC,
        label="intent",
        num_labels=151,
        split=_VALIDATION,
        shots=sizes(220, 440, 880, 1750, 3525, 7050),
    ),
    _icl(
        name="nlu",
        title="NLU",
        hub=_NLU,
        label="label",
        num_labels=68,
        split=split_tenth,
        shots=sizes(250, 510, 1020, 2040, 4080, 8296),
    ),
)

_ICL = Category("icl", "ICL", ICL)


_CITE_SIZES = sizes(8, 30, 75, 165, 345, 700, most=2000)

_PROMPT_FILES = {
    "asqa_revised": "99ebb9d7371895dc352a7f9135ef9e84c3757a9d9d4ce2091b4e2b1d7c39299c",
    "asqa_nocite": "512b525835de1d2d610334d31d002ffa9396474ac141c31ad12adec8d121ac8f",
    "qampari_revised": "d73e184ec6d9fd6ba821ea1e537d2dec96be602aa693706862acc1b3d9586104",
    "qampari_nocite": "0f2c2762e5a96031004c4220e3f3c9b65f6359b5fc44187ef687ae7127a8f4a1",
}
"""Files with instructions and demonstrations in HELMET's repository, and their SHA-256."""


def _cite(name: str, title: str) -> Task:
    data, _, plain = name.partition("_")
    if data == "asqa":
        correct = "str_em"
        score = citations.score_asqa
        metrics: tuple[str, ...] = citations.ASQA_METRICS
    else:
        correct = "qampari_rec_top5"
        score = citations.score_qampari
        metrics = citations.QAMPARI_METRICS
    prompt = name if plain else f"{name}_revised"
    return _make_task(
        name=name,
        title=title,
        template=Template(prompts.CITE_USER, prompts.CITE_PREFIX, separator="\n\n"),
        sizes=_CITE_SIZES,
        unit="documents",
        load=passages.load_alce,
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
        record_shapes=scoring.CITATIONS[data],
        baseline=Baseline("citation", "It is not known [1]."),
    )


CITE = (_cite("asqa", "ASQA"), _cite("qampari", "QAMPARI"))
_NOCITE = (
    _cite("asqa_nocite", "ASQA without citations"),
    _cite("qampari_nocite", "QAMPARI without citations"),
)

_CITE = Category(
    "cite",
    "Cite",
    CITE,
    variants=_NOCITE,
    judge="helm_longctx.benchmarks.helmet.judge.CitationAnnotator",
)


_book = partial(
    _make_task,
    unit="tokens of text",
    shots=2,
    chat=True,
)
_book_qa = partial(
    _book, arguments=("shots", "seed", "context"), metrics=scoring.ANSWER_METRICS
)
_book_question = partial(
    _book_qa, baseline=Baseline("span", "A"), question_only=asking.BOOK_QUESTION
)

_NARRATIVEQA_DIGESTS = (
    "638fe830caab599fd40333b5c6783a83e12e431de35c9dde730d329596456f66",
    "51acc457d81b38e4cfb048436a239fe415aafa9c559577456720774c0cc5b407",
    "83f7672070ca24edb5a2844271cfbb18f351fc1fd84be945411a6814a13eb2e3",
    "2b305c1ac27799d710172855265ba665b8fc258430a97a7994d976414db03021",
    "c69949be3fe1d57f1171f929f18646eb99410784162b15632e778085a15abb79",
    "38b87f8c0a4f0dc139808693bd019e2d0eb3a193f0b52fd52977b20b61f793c4",
    "d0c894370b0cd1462582e89d39924a4e66db5caf69fa8d9ecc75e80284e7091a",
    "c9eddfda2441b23a7828886c3dad94986e693b989bf663a324c69c87870f2c3b",
)
"""The SHA-256 of the parquet files of the test split. Those of the training split are not known."""
_NARRATIVEQA = HubDataset(
    "narrativeqa",
    {"train": 32747, "test": 10557},
    repo="deepmind/narrativeqa",
    columns={
        "train": ("question", "answers"),
        "test": ("document.text", "question", "answers"),
    },
    labelled=False,
    # The hub's conversion stops within the training split. The repository has all rows as parquet files.
    commit="2e643e7363944af1c33a652d1c87320d0871c4e4",
    sha256={
        f"data/test-{number:05}-of-00008.parquet": digest
        for number, digest in enumerate(_NARRATIVEQA_DIGESTS)
    },
)
_ANSWER_RUBRIC = repository_file(
    "scripts/eval_gpt4_longqa.py",
    "9297b773cdfda8bc4f7bd52ebdac35bbd5cfefc3b3f716730dc8fdf6b910c3b7",
)
LONGQA = (
    _book_question(
        "narrativeqa",
        "NarrativeQA",
        Template(prompts.NARRATIVEQA_USER, prompts.NARRATIVEQA_PREFIX),
        books.load_narrativeqa,
        scoring.score_narrativeqa,
        headline=("judge_score",),
        metrics=(*scoring.ANSWER_METRICS, *verdicts.ANSWER_METRICS),
        max_tokens=100,
        sizes=_text_sizes(100),
        sources=lambda length: (_NARRATIVEQA, LLAMA_2),
        official_judge=JUDGE,
        judge_sources={"rubric": _ANSWER_RUBRIC},
        record_shapes=REPLIES,
    ),
    _book_question(
        "infbench_qa",
        "InfiniteBench QA",
        Template(prompts.INFBENCH_QA_USER, prompts.INFBENCH_PREFIX, separator="\n\n"),
        partial(
            books.load_infbench,
            convert=lambda row: {"question": row["input"], "answer": row["answer"]},
            demo=prompts.INFBENCH_QA_DEMO,
        ),
        scoring.score_qa,
        headline=("rougeL_f1",),
        max_tokens=10,
        sizes=_text_sizes(10),
        sources=lambda length: (_infbench_file("longbook_qa_eng"), LLAMA_2),
    ),
    _book_qa(
        "infbench_choice",
        "InfiniteBench MC",
        Template(
            prompts.INFBENCH_CHOICE_USER, prompts.INFBENCH_PREFIX, separator="\n\n"
        ),
        partial(
            books.load_infbench,
            convert=books.infbench_choice,
            demo=prompts.INFBENCH_CHOICE_DEMO,
        ),
        scoring.score_choice,
        headline=("exact_match",),
        max_tokens=10,
        sizes=_text_sizes(10),
        sources=lambda length: (_infbench_file("longbook_choice_eng"), LLAMA_2),
        baseline=Baseline("choice", "A"),
        question_only=asking.BOOK_CHOICE,
    ),
)

_LONGQA = Category(
    "longqa",
    "LongQA",
    LONGQA,
    judge="helm_longctx.benchmarks.helmet.judge.RubricAnnotator",
)


_SUMMARY_RUBRIC = repository_file(
    "scripts/eval_gpt4_summ.py",
    "ad89dd22953326c4036772da97d00904dbaf74129b04e5ea9cc8f6cf75b70bde",
)


# Only the judge needs the key points, so a run without a judge does not fetch them.
_summary = partial(
    _book,
    headline=("judge_f1",),
    metrics=(*scoring.ANSWER_METRICS, *verdicts.SUMMARY_METRICS),
    arguments=("shots", "seed"),
    official_judge=JUDGE,
    record_shapes=scoring.SUMMARY,
    baseline=Baseline("summary", "It is a long text."),
)
_LEXSUM = HubDataset(
    "allenai/multi_lexsum",
    {"train": 3177, "validation": 454},
    parquet="v20230518",
    labelled=False,
    # The digests of the hub's conversion, which has commits of its own.
    sha256={
        "v20230518/train/0000.parquet": "68281d93b2582391c3872f82ad865b592cb6df92018923f83ea63a6c5f09108f",
        "v20230518/train/0001.parquet": "e5e7d20efdc3cade218a35f1a912406efbb90773f87482f87246cc7df5a5b596",
        "v20230518/validation/0000.parquet": "6343f22c2e64eb97892608adb90e23c58e89fd60608cf6698f1fd518002d2822",
    },
)
SUMM = (
    _summary(
        "infbench_sum",
        "InfiniteBench Sum",
        Template(
            prompts.INFBENCH_SUM_USER, prompts.INFBENCH_SUM_PREFIX, separator="\n\n"
        ),
        partial(
            books.load_infbench,
            convert=lambda row: {
                "summary": row["answer"][0].strip(),
                "answer": row["answer"],
            },
            demo=prompts.INFBENCH_SUM_DEMO,
        ),
        scoring.score_book_summary,
        max_tokens=1200,
        sizes=_text_sizes(1200),
        sources=lambda length: (_infbench_file("longbook_sum_eng"), LLAMA_2),
        judge_sources={
            "keypoints": release_file("infbench/longbook_sum_eng_keypoints.jsonl"),
            "rubric": _SUMMARY_RUBRIC,
        },
    ),
    _summary(
        "multi_lexsum",
        "Multi-LexSum",
        Template(prompts.LEXSUM_USER, prompts.LEXSUM_PREFIX, separator="\n\n"),
        books.load_lexsum,
        scoring.score_lexsum,
        max_tokens=400,
        sizes=_text_sizes(400, 300),
        sources=lambda length: (_LEXSUM, LLAMA_2),
        judge_sources={
            "keypoints": release_file("multi_lexsum/multi_lexsum_val.jsonl"),
            "rubric": _SUMMARY_RUBRIC,
        },
    ),
)

_SUMM = Category(
    "summ", "Summ", SUMM, judge="helm_longctx.benchmarks.helmet.judge.RubricAnnotator"
)


_AVERAGED = (_RECALL, _RAG, _ICL, _CITE, _RERANK, _LONGQA, _SUMM)
_RANKINGS = {
    "NDCG": "Normalized discounted cumulative gain of the ranking, by trec_eval.",
    "MAP": "Mean average precision of the ranking, by trec_eval.",
    "Recall": "Share of the relevant passages that the ranking contains, by trec_eval.",
    "P": "Share of the ranking's passages that are relevant, by trec_eval.",
}

HELMET = read_benchmark(
    __package__,
    (*_AVERAGED, *_NOT_AVERAGED),
    metrics=[
        Metric(
            f"{name}@{cut}",
            f"{name}@{cut}",
            f"{about} The ranking is cut at rank {cut}.",
        )
        for (name, about), cut in product(_RANKINGS.items(), scoring.RANKING_CUTS)
    ],
    data=SENTENCE_TERMS,
    published=partial(
        published_results, (*_AVERAGED, _RULER)
    ),  # NIAH is one of RULER's tasks
)
