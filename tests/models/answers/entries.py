"""The run entries whose answers by a real model are scored: for each suite, a task of every kind of score."""

from __future__ import annotations

BABILONG = {
    "babilong": ("qa1", "qa2", "qa5"),
    "babilong_more": (
        "qa6",
        "qa7",
        "qa8",
        "qa10",
        "qa14",
        "qa15",
        "qa16",
        "qa19",
        "qa20",
    ),
}
HELMET = {
    "recall": ("json_kv", "ruler_niah_mk_2", "ruler_niah_mv"),
    "rag": ("nq", "popqa"),
    "icl": ("trec_coarse", "banking77"),
    "cite": ("asqa_nocite", "qampari_nocite"),
    "rerank": ("msmarco",),
    "longqa": ("narrativeqa", "infbench_qa", "infbench_choice"),
    "summ": ("infbench_sum", "multi_lexsum"),
}
LONGBENCH = (
    *(
        "narrativeqa",
        "multifieldqa_zh",
        "dureader",
        "gov_report",
        "trec",
        "triviaqa",
        "samsum",
        "passage_count",
    ),
    "passage_retrieval_en",
    "passage_retrieval_zh",
    "lcc",
)
LONGPROC = {
    "html_to_tsv": "0.5k",
    "path_traversal": "0.5k",
    "tom_tracking": "0.5k",
    "countdown": "0.5k",
    "travel_planning": "2k",
}
LV_EVAL = (
    *(
        "hotpotwikiqa_mixup",
        "multifieldqa_en_mixup",
        "multifieldqa_zh_mixup",
        "lic_mixup",
        "loogle_SD_mixup",
    ),
    "cmrc_mixup",
    "factrecall_en",
    "factrecall_zh",
    "dureader_mixup",
)
ONERULER = ("niah_single", "niah_none", "cwe")
RULER = ("niah_single_1", "niah_multikey_2", "vt", "cwe", "fwe", "qa_1", "qa_2")
SCBENCH = (
    *(
        "kv",
        "prefix_suffix",
        "vt",
        "repoqa",
        "qa_eng",
        "qa_chn",
        "choice_eng",
        "many_shot",
        "mf",
        "summary",
    ),
    "summary_with_needles",
    "repoqa_and_kv",
)
WORDS = "count_with=longctx/words"

COMPARED = (
    *(
        "helmet_rag",
        "helmet_summ",
        "helmet_recall:task=json_kv",
        "helmet_longqa:task=narrativeqa",
    ),
    *(
        f"longbench:task={task}"
        for task in (
            "narrativeqa",
            "multifieldqa_zh",
            "dureader",
            "gov_report",
            "triviaqa",
        )
    ),
    "longbench:task=samsum",
    "longbench:task=lcc",
    "lv_eval",
    "mrcr",
    *(f"scbench_multi_request:task={task}" for task in ("qa_chn", "summary")),
)
"""Starts of the entries whose answers are compared with texts, word by word."""
CONTAINED = (
    "ruler",
    "scbench_multi_request:task=kv",
    "scbench_multi_request:task=qa_eng",
)
"""Starts of the entries whose answers must contain a text."""

ENTRIES = (
    "ada_leval_bestanswer:length=1k",
    "ada_leval_tsort:length=2k",
    *(
        f"{category}:task={task},length=0k"
        for category, tasks in BABILONG.items()
        for task in tasks
    ),
    *(f"graphwalks:task={task},length=4k" for task in ("bfs", "parents")),
    *(
        f"helmet_{category}:task={task},length=4k"
        for category, tasks in HELMET.items()
        for task in tasks
    ),
    *(f"longbench:task={task}" for task in LONGBENCH),
    "longbench_v2:mode=0shot",
    "longbench_write:task=requests",
    *(f"longhealth:task={task},{WORDS}" for task in ("task1", "task2", "task3")),
    *(f"longproc:task={task},length={length}" for task, length in LONGPROC.items()),
    *(f"lv_eval:dataset={task},length=16k" for task in LV_EVAL),
    *(f"mrcr:needles={needles},length=8k" for needles in (2, 8)),
    *(f"mrcr_v2:needles={needles},length=8k" for needles in (2, 8)),
    *(
        f"oneruler_{language}:task={task},length=8k,{WORDS}"
        for language in ("en", "de")
        for task in ONERULER
    ),
    *(f"ruler:task={task},length=4k,{WORDS}" for task in RULER),
    *(f"scbench_multi_request:task={task}" for task in SCBENCH),
)
"""All run entries."""
