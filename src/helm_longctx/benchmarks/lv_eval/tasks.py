"""LV-Eval's tasks, made from the table of its eleven data sets.

Source: infinigence/LVEval at 63e7ae9, config.py (templates, budgets, metrics), README.md (sizes, confusing facts).
"""

from dataclasses import dataclass
from typing import Literal

from helm_longctx.benchmarks.lv_eval import prompts, scoring
from helm_longctx.benchmarks.lv_eval.data import load
from helm_longctx.benchmarks.lv_eval.scoring import CONFUSED, confusion
from helm_longctx.tasks import TEXT, Baseline, Category, HubZip, Template, read_benchmark, task_fields
from helm_longctx.tasks.lengths import length_label
from helm_longctx.tasks.task import ProtocolArgument, Record, Scorer, Scores, Task, Variant

LENGTHS = {"16k": 16384, "32k": 32768, "64k": 65536, "128k": 131072, "256k": 262144}
"""The official lengths. They count English words or Chinese characters, not tokens."""


@dataclass(frozen=True)
class Scoring:
    """The function that scores a data set, and its metrics.

    Args:
        official: the name of the official function in config.py.
        score: computes the metrics, 0…1. It is a pure function.
        names: every name that `score` can return, the headline first.
    """

    official: str
    score: Scorer
    names: tuple[str, ...]


GATED_EN = Scoring("qa_f1_score_with_gold_ans", scoring.score_gated_en, scoring.GATED_METRICS)
GATED_ZH = Scoring("qa_f1_zh_score_with_gold_ans", scoring.score_gated_zh, scoring.GATED_METRICS)
PLAIN_EN = Scoring("qa_f1_score", scoring.score_plain_en, scoring.PLAIN_METRICS)
PLAIN_ZH = Scoring("qa_f1_zh_score", scoring.score_plain_zh, scoring.PLAIN_METRICS)
ROUGE_ZH = Scoring("rouge_zh_score_blacklist", scoring.score_rouge_zh, scoring.ROUGE_METRICS)


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
    scoring: Scoring
    rows: int
    max_tokens: int = 64
    confusing: bool = False

    @property
    def metrics(self) -> tuple[str, ...]:
        """Every name that `score` can return."""
        return (*self.scoring.names, *((CONFUSED,) if self.confusing else ()))

    def score(self, record: Record) -> Scores:
        """Return the metrics of `scoring`, and `confused` if the data set has confusing facts."""
        return {**self.scoring.score(record), **(confusion(record) if self.confusing else {})}

    def file(self, length: str) -> str:
        """Return the path of the official file under the data root, for a length such as `16k`."""
        return f"lveval/{self.name}/{self.name}_{length}.jsonl"


DATASETS = (
    Dataset("hotpotwikiqa_mixup", "HotpotWikiQA", "en", prompts.HOTPOTWIKIQA, GATED_EN, 124, confusing=True),
    Dataset("loogle_SD_mixup", "LooGLE SD", "en", prompts.LOOGLE_SD, GATED_EN, 160),
    Dataset("loogle_CR_mixup", "LooGLE CR", "en", prompts.LOOGLE_CR, GATED_EN, 99),
    Dataset("loogle_MIR_mixup", "LooGLE MIR", "en", prompts.LOOGLE_MIR, GATED_EN, 139),
    Dataset("multifieldqa_en_mixup", "MultiFieldQA en", "en", prompts.MULTIFIELDQA_EN, GATED_EN, 101, confusing=True),
    Dataset("multifieldqa_zh_mixup", "MultiFieldQA zh", "zh", prompts.MULTIFIELDQA_ZH, GATED_ZH, 133, confusing=True),
    Dataset("factrecall_en", "FactRecall en", "en", prompts.FACTRECALL_EN, PLAIN_EN, 200, 16, True),
    Dataset("factrecall_zh", "FactRecall zh", "zh", prompts.FACTRECALL_ZH, PLAIN_ZH, 200, 16, True),
    Dataset("cmrc_mixup", "CMRC", "zh", prompts.CMRC, GATED_ZH, 200),
    Dataset("lic_mixup", "LIC", "zh", prompts.LIC, GATED_ZH, 197, confusing=True),
    Dataset("dureader_mixup", "DuReader", "zh", prompts.DUREADER, ROUGE_ZH, 176),
)


REPO = "Infinigence/LVEval"

VARIANTS: dict[ProtocolArgument, Variant] = {
    "paper": Variant(),
    "api": Variant(system="You are a helpful assistant.", temperature=1.0, max_tokens=400),
}
"""How the official code asks local models (prediction.py) and APIs (prediction_gpt.py).

To APIs it sends a system message, but no `temperature` and no `max_tokens`. HELM's requests must have both: 1 is
OpenAI's default temperature. A cut prompt leaves 500 tokens free: 100 for the chat format, and 400 for the answer.
"""


def _task(dataset: Dataset) -> Task:
    def sources(length: int) -> tuple[HubZip, ...]:
        path = dataset.file(length_label(length))
        return (HubZip(REPO, f"{dataset.name}.zip", path.removeprefix("lveval/"), path),)

    return Task(
        name=dataset.name,
        title=dataset.title,
        # The prompt already ends with "Answer:", so chats and completions have the same text.
        template=Template(dataset.prompt, "", separator=""),
        sizes={length: length for length in LENGTHS.values()},
        load=load,
        score=dataset.score,
        headline=dataset.scoring.names[:1],
        metrics=dataset.metrics,
        max_tokens=dataset.max_tokens,
        num_samples=dataset.rows,
        sources=sources,
        variants=VARIANTS,
        trait="confusing facts" if dataset.confusing else "",
        record_shapes={"answer_keywords": TEXT},
        baseline=Baseline("span", "the" if dataset.language == "en" else "的"),
        **task_fields(__package__),
    )


LV_EVAL = read_benchmark(__package__, (Category("", "", tuple(map(_task, DATASETS))),))
