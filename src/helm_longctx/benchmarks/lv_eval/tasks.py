"""LV-Eval's tasks, made from the table of its eleven data sets, with a file of JSON lines for each one and length.

Source: infinigence/LVEval at 63e7ae9, config.py (templates, budgets, metrics), README.md (Data Format, sizes, confusing
facts), utils.py (load_jsonl), prediction.py (get_pred), metrics.py, and evaluation.py (scorer). Only the first
reference counts. An item without a reference scores 0. Where the official code divides by zero (keywords without any
word), the metrics that depend on the keywords are absent.
"""

import ast
import json
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from typing import Any, Literal

from helm_longctx.benchmarks.lv_eval import prompts
from helm_longctx.data.jsonl import Row
from helm_longctx.redaction.abbreviation import digest
from helm_longctx.tasks import (
    TEXT,
    TEXTS,
    Baseline,
    DataRoot,
    Example,
    HubZip,
    InputError,
    JsonLines,
    MetricValues,
    ScorerInput,
    Settings,
    Task,
    Template,
    Variant,
    read_benchmark,
    sizes_in_tokens,
    task_fields,
)
from helm_longctx.tasks.lengths import length_label
from helm_longctx.tasks.sampling import number_name, take_sample
from helm_longctx.tasks.task import ProtocolArgument, Scorer
from helm_longctx.tasks.words import (
    chinese_words,
    cut,
    english_words,
    f1,
    normalize_chinese,
    rouge_l,
)

_GATED = "f1_gated"
PLAIN = "f1"
_ROUGE = "rouge_l"
_GATED_METRICS = (_GATED, "f1_before_gate", "keyword_recall")
_PLAIN_METRICS = (PLAIN,)
_ROUGE_METRICS = (_ROUGE, "rouge_l_all_words")

_Words = Callable[[str], list[str]]

_EN = """
    and to of in her was with for it from is that his he by she they or at because be on are their what as had were
    about being this who but have has when which does
"""
_STOP_WORDS_EN = frozenset(_EN.split())
"""Words that do not count as keyword hits in the English data sets. They are part of the metric's definition."""

_ZH = """
    的 和 是 等 在 年 可以 为 与 ‰ 了 或 一种 月 c 至 日 有 进行 于 不 中 × 根据 小
    由 亩 也 要 指 法 会 元 主要 以及 通过 首先 对 然后 号 以 所 后 丁 包括 无 将 用 能
    形 方面 因素 位于 而 从 到 一定 用于 但 使用 让 具有 并 亿元 万元 上 类 基于 才 来 地
    片 其他 个 或者 变得 时 给 你 使 条 受 已经 带 度
"""
_STOP_WORDS_ZH = frozenset(_ZH.split())
"""The same for the Chinese data sets. DuReader's ROUGE-L removes these words from both texts."""


def _field_text(record: ScorerInput, name: str) -> str:
    """Return a text field of a record, or an empty text if the record does not have it."""
    text = record.get(name) or ""
    if not isinstance(text, str):
        raise InputError(f"{name} must be text or nothing, found {type(text).__name__}")
    return text


def _score_plain(record: ScorerInput, words: _Words) -> MetricValues:
    if not record["references"]:
        return {PLAIN: 0.0}
    return {PLAIN: f1(words(record["prediction"]), words(record["references"][0]))}


def _score_with_gate(
    record: ScorerInput,
    words: _Words,
    ignored: frozenset[str],
    least: float,
    always: bool,
) -> MetricValues:
    """Compute F1, but 0 if the output has less than the share `least` of the keywords.

    Args:
        ignored: stop words. A stop word in the output is not a hit, but it counts in the number of keywords.
        always: whether the reference replaces missing keywords. Otherwise there is no gate without keywords.
    """
    if not record["references"]:
        return {_GATED: 0.0}
    reference = record["references"][0]
    output = words(record["prediction"])
    # The README says that the words of the answer are filtered, but only hits of keywords are (metrics.py:119 and 124).
    ungated = f1(output, words(reference))
    # In Chinese the reference replaces missing keywords (metrics.py:155); in English there is then no gate
    # (metrics.py:115).
    keywords = _field_text(record, "answer_keywords") or (reference if always else "")
    if not keywords:
        return {_GATED: ungated, "f1_before_gate": ungated}
    keyword_words = words(keywords)
    if not keyword_words:
        return {"f1_before_gate": ungated}
    # Stop words are left out of the hits, but not of the number of keywords (metrics.py:162 to 164).
    hits = Counter(output) & Counter(keyword_words)
    recall = sum(count for word, count in hits.items() if word not in ignored) / len(
        keyword_words
    )
    return {
        _GATED: ungated if recall >= least else 0.0,
        "f1_before_gate": ungated,
        "keyword_recall": recall,
    }


def _score_rouge_zh(record: ScorerInput) -> MetricValues:
    """Compute ROUGE-L without stop words (rouge_zh_score_blacklist), and with them (rouge_zh_score)."""
    if not record["references"]:
        return {_ROUGE: 0.0}
    # The words are joined by spaces. The second cut returns these as words of their own (metrics.py:68 to 71).
    output, gold = (
        " ".join(cut(text)) for text in (record["prediction"], record["references"][0])
    )
    return {
        _ROUGE: rouge_l(_remove_stop_words(output), _remove_stop_words(gold)),
        "rouge_l_all_words": rouge_l(output, gold),
    }


def _remove_stop_words(spaced: str) -> str:
    """Return the text's normalized words without stop words. As in the official code, the text is cut a second time."""
    words = map(normalize_chinese, cut(spaced))
    return " ".join(word for word in words if word not in _STOP_WORDS_ZH)


_CONFUSED = "confused"


def confusion(record: ScorerInput) -> MetricValues:
    """Compute `confused`: 1 if an answer comes from a confusing fact instead of the evidence, else 0.

    LV-Eval adds sentences to the context that resemble the evidence but are about something else ("David Beckham …
    physics" where the answer is Ludwig Beethoven). Its data contains these sentences (`confusing_facts`), but not the
    wrong answers that they suggest, and its code has no metric for them. This metric is ours. An answer is confused if

    1. at least half of its words occur in the confusing facts, and
    2. more of its words occur only there than only in the true answer (first reference and keywords).

    Words are distinct. They are the words that the F1 metric counts, without stop words and the question's words. There
    is no value if the row has no confusing fact, or if the facts contain every word of the true answer, because words
    cannot tell the two apart then. An answer without words of either, such as a refusal, is not confused.

    Args:
        record: `prediction`, `references`; `confusing_facts` (texts or one text), `language` ("zh", else English);
            and, if the row has them, `question` and `answer_keywords`.

    Raises:
        InputError: a field has the wrong type.
    """
    facts = record.get("confusing_facts") or []
    facts = [facts] if isinstance(facts, str) else facts
    if not isinstance(facts, list) or not all(isinstance(fact, str) for fact in facts):
        raise InputError("confusing_facts must be text, a list of texts or nothing")
    chinese = record.get("language") == "zh"
    question = _words([_field_text(record, "question")], chinese)
    confusing = _words(facts, chinese) - question
    true = (
        _words(
            [*record["references"][:1], _field_text(record, "answer_keywords")], chinese
        )
        - question
    )
    if not confusing or true <= confusing:
        return {}
    output = _words([record["prediction"]], chinese) - question
    from_facts = 2 * len(output & confusing) >= len(output)
    return {
        _CONFUSED: float(
            from_facts
            and len(output & (confusing - true)) > len(output & (true - confusing))
        )
    }


def _words(texts: Iterable[str], chinese: bool) -> set[str]:
    split = chinese_words if chinese else english_words
    ignored = _STOP_WORDS_ZH if chinese else _STOP_WORDS_EN
    words: set[str] = set()
    for text in texts:
        words |= set(split(text))
    return words - ignored


_TEXT_OR_NOTHING = (str, type(None))
COLUMNS: Mapping[str, type | tuple[type, ...]] = {
    "input": str,
    "context": str,
    "answers": list,
    "length": int,
    "language": str,
    "answer_keywords": _TEXT_OR_NOTHING,
    "confusing_facts": (list, *_TEXT_OR_NOTHING),
}


@take_sample
def load(task: Task, settings: Settings, root: DataRoot) -> Iterator[Example]:
    """Load the questions in file order.

    The files have no ids. All five lengths of a data set have the same questions and answers, so an id is a hash of
    these. Several rows can have the same question and answers (all 200 rows of a factrecall file do) and differ only in
    their contexts. These also differ between lengths. From the second such row on, the id ends with a number in file
    order.
    """
    earlier: Counter[str] = Counter()
    for row in JsonLines(task.only_file(settings, root), COLUMNS):
        TEXTS.check(f"{row}: column 'answers'", row["answers"])
        yield Example(
            id=f"{task.name}-{name_question(row, earlier)}",
            fields={"context": row["context"], "input": row["input"]},
            references=row["answers"],
            source="official",
            record={
                "question": row["input"],
                "language": row["language"],
                "answer_keywords": row.get("answer_keywords") or "",
                "confusing_facts": confusing_facts(row.get("confusing_facts")),
                "size": row["length"],
            },
        )


def confusing_facts(value: list[Any] | str | None) -> list[str]:
    """Return the facts as a list without blank ones. Some files have the list as a string in Python notation."""
    if isinstance(value, str) and value.lstrip().startswith("["):
        with suppress(
            ValueError, SyntaxError, RecursionError, MemoryError
        ):  # it is a text that starts with a bracket
            value = ast.literal_eval(value.strip())
    facts = value if isinstance(value, list) else [value]
    values = []
    for fact in facts:
        if fact and str(fact).strip():
            values.append(str(fact))
    return values


def name_question(row: Row, earlier: Counter[str]) -> str:
    """Return a digest of a question (the same at every length), and a number if the question came before."""
    # Twelve digits tell the 8,645 rows apart and keep ids readable.
    content = json.dumps([row["input"], row["answers"]], ensure_ascii=False)
    return number_name(digest(content)[:12], earlier)


LENGTHS = {
    "16k": 16384,
    "32k": 32768,
    "64k": 65536,
    "128k": 131072,
    "256k": 262144,
}
"""The official lengths. They count English words or Chinese characters, not tokens."""


@dataclass(frozen=True)
class _Scoring:
    """The function that scores a data set, and its metrics.

    Args:
        official: the name of the official function in config.py.
        score: computes the metrics, 0…1. It is a pure function.
        names: every name that `score` can return, the headline first.
    """

    official: str
    score: Scorer
    names: tuple[str, ...]


_gated_en = partial(
    _score_with_gate,
    words=english_words,
    ignored=_STOP_WORDS_EN,
    least=0.2,
    always=False,
)
_gated_zh = partial(
    _score_with_gate,
    words=chinese_words,
    ignored=_STOP_WORDS_ZH,
    least=0.4,
    always=True,
)
GATED_EN = _Scoring("qa_f1_score_with_gold_ans", _gated_en, _GATED_METRICS)
GATED_ZH = _Scoring("qa_f1_zh_score_with_gold_ans", _gated_zh, _GATED_METRICS)
PLAIN_EN = _Scoring(
    "qa_f1_score", partial(_score_plain, words=english_words), _PLAIN_METRICS
)
_PLAIN_ZH = _Scoring(
    "qa_f1_zh_score", partial(_score_plain, words=chinese_words), _PLAIN_METRICS
)
_ROUGE_ZH = _Scoring("rouge_zh_score_blacklist", _score_rouge_zh, _ROUGE_METRICS)


@dataclass(frozen=True)
class Dataset:
    """A data set of LV-Eval.

    Args:
        prompt: the template, with the fields `context` and `input`.
        confusing: whether the contexts contain confusing facts.
    """

    name: str
    title: str
    language: Literal["en", "zh"]
    prompt: str
    scoring: _Scoring
    rows: int
    max_tokens: int = 64
    confusing: bool = False

    @property
    def metrics(self) -> tuple[str, ...]:
        """Every name that `score` can return."""
        return (*self.scoring.names, *((_CONFUSED,) if self.confusing else ()))

    def score(self, record: ScorerInput) -> MetricValues:
        """Return the metrics of `scoring`, and `confused` if the data set has confusing facts."""
        return {
            **self.scoring.score(record),
            **(confusion(record) if self.confusing else {}),
        }

    def file(self, length: str) -> str:
        """Return the path of the official file under the data root, for a length such as `16k`."""
        return f"lveval/{self.name}/{self.name}_{length}.jsonl"


DATASETS = (
    Dataset(
        "hotpotwikiqa_mixup",
        "HotpotWikiQA",
        "en",
        prompts.HOTPOTWIKIQA,
        GATED_EN,
        124,
        confusing=True,
    ),
    Dataset("loogle_SD_mixup", "LooGLE SD", "en", prompts.ONE_PASSAGE, GATED_EN, 160),
    Dataset("loogle_CR_mixup", "LooGLE CR", "en", prompts.ONE_PASSAGE, GATED_EN, 99),
    Dataset("loogle_MIR_mixup", "LooGLE MIR", "en", prompts.ONE_PASSAGE, GATED_EN, 139),
    Dataset(
        "multifieldqa_en_mixup",
        "MultiFieldQA en",
        "en",
        prompts.ONE_PASSAGE,
        GATED_EN,
        101,
        confusing=True,
    ),
    Dataset(
        "multifieldqa_zh_mixup",
        "MultiFieldQA zh",
        "zh",
        prompts.MULTIFIELDQA_ZH,
        GATED_ZH,
        133,
        confusing=True,
    ),
    Dataset(
        "factrecall_en",
        "FactRecall en",
        "en",
        prompts.FACTRECALL_EN,
        PLAIN_EN,
        200,
        16,
        True,
    ),
    Dataset(
        "factrecall_zh",
        "FactRecall zh",
        "zh",
        prompts.FACTRECALL_ZH,
        _PLAIN_ZH,
        200,
        16,
        True,
    ),
    Dataset("cmrc_mixup", "CMRC", "zh", prompts.CMRC, GATED_ZH, 200),
    Dataset("lic_mixup", "LIC", "zh", prompts.LIC, GATED_ZH, 197, confusing=True),
    Dataset("dureader_mixup", "DuReader", "zh", prompts.CMRC, _ROUGE_ZH, 176),
)


_REPO = "Infinigence/LVEval"
_COMMIT = "86a3b0e6f2266281d481bcb46a0bda5b511cffb0"
"""The commit of the archives. One public program pins it."""

_VARIANTS: dict[ProtocolArgument, Variant] = {
    "paper": Variant(),
    "api": Variant(
        system="You are a helpful assistant.",
        temperature=1.0,
        max_tokens=400,
    ),
}
"""How the official code asks local models (prediction.py) and APIs (prediction_gpt.py).

To APIs it sends a system message, but no `temperature` and no `max_tokens`. HELM's requests must have both: 1 is
OpenAI's default temperature. A cut prompt leaves 500 tokens free: 100 for the chat format, and 400 for the answer.
"""


def _task(dataset: Dataset) -> Task:
    def sources(length: int) -> tuple[HubZip, ...]:
        path = dataset.file(length_label(length))
        return (
            HubZip(
                repo=_REPO,
                name=f"{dataset.name}.zip",
                member=path.removeprefix("lveval/"),
                path=path,
                commit=_COMMIT,
            ),
        )

    return Task(
        name=dataset.name,
        title=dataset.title,
        # The prompt already ends with "Answer:", so chats and completions have the same text.
        template=Template.whole(dataset.prompt),
        sizes=sizes_in_tokens(LENGTHS.values()),
        load=load,
        score=dataset.score,
        headline=dataset.scoring.names[:1],
        metrics=dataset.metrics,
        max_tokens=dataset.max_tokens,
        num_samples=dataset.rows,
        sources=sources,
        variants=_VARIANTS,
        trait="confusing facts" if dataset.confusing else "",
        record_shapes={"answer_keywords": TEXT},
        baseline=Baseline("span", "the" if dataset.language == "en" else "的"),
        **task_fields(__package__),
    )


LV_EVAL = read_benchmark(__package__, tuple(map(_task, DATASETS)))
