"""Recall: values in a JSON object, and tasks of RULER, which are also the categories RULER and NIAH."""

from functools import partial

from helm_longctx.benchmarks.helmet import prompts, scoring
from helm_longctx.benchmarks.helmet.categories.common import MOST_GENERATED, make_task, official_file, sizes
from helm_longctx.benchmarks.helmet.data import generate, ruler
from helm_longctx.benchmarks.helmet.data.recall import load_json_kv, load_ruler
from helm_longctx.tasks.benchmark import Category
from helm_longctx.tasks.lengths import STANDARD
from helm_longctx.tasks.task import AnswerKind, Baseline, Task
from helm_longctx.tasks.template import Template

_JSON_KV_SIZES = sizes(50, 105, 220, 440, 900, 1800)
JSON_KV = make_task(
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
    optional_sources=lambda length: official_file(length, f"json_kv/test_k{_JSON_KV_SIZES.get(length)}_dep6.jsonl"),
    any_length=True,
    arguments=("shots", "seed"),
    most_samples=MOST_GENERATED,
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
    make: generate.Maker,
    max_tokens: int,
    template: Template = _NEEDLE,
    has_depth: bool = True,
) -> Task:
    # RULER's question answering is scored like HELMET's other questions, the rest by recall of the answers.
    is_qa = template is _DOCUMENTS
    return make_task(
        name=f"ruler_{name}",
        title=title,
        template=template,
        sizes={length: length for length in STANDARD.values()},
        unit="tokens",
        load=partial(load_ruler, make=make, has_depth=has_depth),
        score=scoring.score_qa if is_qa else scoring.score_ruler,
        headline=("substring_exact_match",) if is_qa else ("ruler_recall",),
        metrics=scoring.ANSWER_METRICS if is_qa else ("ruler_recall",),
        max_tokens=max_tokens,
        # The file is optional, because rows are generated without it.
        optional_sources=lambda length: official_file(length, f"ruler/{folder}/validation_{length}.jsonl"),
        any_length=True,
        arguments=("seed",),
        most_samples=MOST_GENERATED,
        baseline=Baseline(_ANSWERS.get(template, "lookup"), "0"),
    )


_prose = partial(partial, ruler.hide_needles, haystack="prose")
_needles = partial(partial, ruler.hide_needles, haystack="needles")

NIAH = _ruler("niah_s_2", "NIAH", "niah_single_2", _prose(), 50)
MK_2 = _ruler("niah_mk_2", "RULER MK Needle", "niah_multikey_2", _needles(), 50)
MK_3 = _ruler("niah_mk_3", "RULER MK UUID", "niah_multikey_3", _needles(kind="uuids"), 100)
MV = _ruler("niah_mv", "RULER MV", "niah_multivalue", _prose(values=4), 50, _NEEDLES)
RULER = (
    _ruler("niah_s_1", "NIAH Repeat", "niah_single_1", _needles(haystack="noise"), 50),
    NIAH,
    _ruler("niah_s_3", "NIAH UUID", "niah_single_3", _prose(kind="uuids"), 50),
    _ruler("niah_mk_1", "RULER MK Essay", "niah_multikey_1", _prose(keys=4), 50),
    MK_2,
    MK_3,
    _ruler("niah_mq", "RULER MQ", "niah_multiquery", _prose(keys=4, queries=4), 100, _NEEDLES),
    MV,
    _ruler("cwe", "RULER CWE", "cwe", ruler.common_words, 100, _COMMON, False),
    _ruler("fwe", "RULER FWE", "fwe", ruler.frequent_words, 50, _FREQUENT, False),
    _ruler("vt", "RULER VT", "vt", ruler.variable_tracking, 50, _CHAIN, False),
    _ruler("qa_1", "RULER SQuAD", "qa_1", ruler.one_hop_questions, 50, _DOCUMENTS),
    _ruler("qa_2", "RULER HotpotQA", "qa_2", ruler.two_hop_questions, 50, _DOCUMENTS),
)

CATEGORY = Category("recall", "Recall", (JSON_KV, MK_2, MK_3, MV))
# HELMET's average leaves these two out. They were only used to study the correlation of tasks.
NOT_AVERAGED = (Category("ruler", "RULER", RULER, averaged=False), Category("niah", "NIAH", (NIAH,), averaged=False))
