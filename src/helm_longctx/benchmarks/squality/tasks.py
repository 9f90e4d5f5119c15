"""SQuALITY's task, its loader and its metrics.

Source: nyu-mll/SQuALITY at dc08d4f, run_summarization.py (`preprocess_all_qds`) and utils/metrics/multi_rouge;
the data is in data/v1-3/txt.
"""

from collections.abc import Iterator

from helm_longctx.tasks import (
    TEXTS,
    Baseline,
    DataRoot,
    Example,
    InputError,
    JsonLines,
    MetricValues,
    ScorerInput,
    Settings,
    Task,
    Template,
    Types,
    WebFile,
    read_benchmark,
)
from helm_longctx.tasks.sampling import take_sample
from helm_longctx.tasks.words import make_rouge

_COMMIT = "dc08d4f574639d773bc64ef3ab3527043108fb4e"
SOURCE = WebFile(
    f"https://raw.githubusercontent.com/nyu-mll/SQuALITY/{_COMMIT}/data/v1-3/txt/test.jsonl",
    "squality/v1-3/txt/test.jsonl",
    blob="a83a75272fc4445fe5ad99c8dbf6cfe7e77d4182",
)
COLUMNS: Types = {
    "metadata": dict,
    "document": str,
    "questions": list,
}


@take_sample
def load(task: Task, settings: Settings, root: DataRoot) -> Iterator[Example]:
    """Yield the questions on each story, in file order."""
    for row in JsonLines(root / SOURCE.path, COLUMNS):
        for number, asked in enumerate(row["questions"]):
            try:
                name = row["metadata"]["passage_id"]
                question = asked["question_text"]
                summaries = []
                for response in asked["responses"]:
                    summaries.append(response["response_text"])
                TEXTS.check("response_text", [name, question, *summaries])
            except (KeyError, TypeError) as error:
                what = "a story needs passage_id, question_text and response_text"
                raise InputError(f"{row}: {what} ({error})") from error
            fields = {"context": row["document"], "question": question}
            yield Example(
                id=f"{name}-{number}",
                fields=fields,
                references=summaries,
                source="official",
                group=name,
            )


def score(record: ScorerInput) -> MetricValues:
    """Return ROUGE's F1 with the best of the summaries, for each kind of ROUGE alone."""
    rouge = make_rouge("rouge1", "rouge2", "rougeL", stems=True)
    output = record["prediction"].strip()
    best: MetricValues = {}
    for reference in record["references"]:
        for name, value in rouge.score(reference.strip(), output).items():
            best[name] = max(best.get(name, 0.0), value.fmeasure)
    return best


_SUMMARIES = Task(
    name="summaries",
    title="Summaries",
    # The official input of a model without a separator token, and without a prefix.
    template=Template.whole(" {question}  {context}  {question}"),
    load=load,
    score=score,
    headline=("rougeL",),
    metrics=("rouge1", "rouge2", "rougeL"),
    max_tokens=512,  # what tau-nlp/zero_scrolls at c994676 gives this data set
    num_samples=260,
    sources=lambda length: (SOURCE,),
    cut="nothing",
    baseline=Baseline("summary", "It is a story about people in space."),
)

SQUALITY = read_benchmark(__package__, (_SUMMARIES,))
