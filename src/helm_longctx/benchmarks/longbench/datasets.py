"""LongBench's 21 data sets.

Source: THUDM/LongBench at 2e00731, LongBench/eval.py (metrics), pred.py (LongBench-E, chats),
config/dataset2maxlen.json and task.md (rows).
"""

from dataclasses import dataclass


@dataclass(frozen=True)
class Dataset:
    """A data set.

    Args:
        name: its official name.
        title: its name on web pages and in tables.
        metric: the name of its official metric.
        max_tokens: output budget in tokens.
        rows: number of questions.
        chinese: whether its texts are Chinese.
        extended: whether LongBench-E has it, too.
        few_shot: whether its prompt has solved examples; only the first line of an answer is scored then.
        code: whether code is to be completed.
    """

    name: str
    title: str
    metric: str
    max_tokens: int
    rows: int = 200
    chinese: bool = False
    extended: bool = False
    few_shot: bool = False
    code: bool = False


# fmt: off
DATASETS = (
    Dataset("narrativeqa", "NarrativeQA", "qa_f1_score", 128),
    Dataset("qasper", "Qasper", "qa_f1_score", 128, extended=True),
    Dataset("multifieldqa_en", "MultiFieldQA-en", "qa_f1_score", 64, 150, extended=True),
    Dataset("multifieldqa_zh", "MultiFieldQA-zh", "qa_f1_zh_score", 64, chinese=True),
    Dataset("hotpotqa", "HotpotQA", "qa_f1_score", 32, extended=True),
    Dataset("2wikimqa", "2WikiMultihopQA", "qa_f1_score", 32, extended=True),
    Dataset("musique", "MuSiQue", "qa_f1_score", 32),
    Dataset("dureader", "DuReader", "rouge_zh_score", 128, chinese=True),
    Dataset("gov_report", "GovReport", "rouge_score", 512, extended=True),
    Dataset("qmsum", "QMSum", "rouge_score", 512),
    Dataset("multi_news", "MultiNews", "rouge_score", 512, extended=True),
    Dataset("vcsum", "VCSUM", "rouge_zh_score", 512, chinese=True),
    Dataset("trec", "TREC", "classification_score", 64, extended=True, few_shot=True),
    Dataset("triviaqa", "TriviaQA", "qa_f1_score", 32, extended=True, few_shot=True),
    Dataset("samsum", "SAMSum", "rouge_score", 128, extended=True, few_shot=True),
    Dataset("lsht", "LSHT", "classification_score", 64, chinese=True, few_shot=True),
    Dataset("passage_count", "PassageCount", "count_score", 32, extended=True),
    Dataset("passage_retrieval_en", "PassageRetrieval-en", "retrieval_score", 32, extended=True),
    Dataset("passage_retrieval_zh", "PassageRetrieval-zh", "retrieval_zh_score", 32, chinese=True),
    Dataset("lcc", "LCC", "code_sim_score", 64, 500, extended=True, code=True),
    Dataset("repobench-p", "RepoBench-P", "code_sim_score", 64, 500, extended=True, code=True),
)
# fmt: on
