"""SCBench's tasks in both modes: the turns of a conversation, and requests on the same context.

Source: microsoft/MInference at fb56c91, scbench/, and the rows of the hub data set microsoft/SCBench.
"""

from collections.abc import Sequence
from functools import partial

from helm_longctx.benchmarks.scbench.data import load
from helm_longctx.benchmarks.scbench.prompts import BUDGETS, SHARED
from helm_longctx.benchmarks.scbench.scoring import BY_TURN, MEASURES, SHAPES, score
from helm_longctx.tasks import NO_TEMPLATE, Baseline, Category, HubDataset, Message, Metric, Task, read_benchmark

PASSAGE = 300
"""Number of characters that the baseline repeats."""

_ROWS = {
    "kv": ("Retr.KV", 100, 500),
    "prefix_suffix": ("Retr.Prefix-Suffix", 100, 500),
    "vt": ("Retr.MultiHop", 90, 450),
    "repoqa": ("Code.RepoQA", 88, 440),
    "qa_eng": ("En.QA", 69, 351),
    "qa_chn": ("Zh.QA", 35, 189),
    "choice_eng": ("En.MultiChoice", 58, 229),
    "many_shot": ("ICL.ManyShot", 54, 270),
    "mf": ("Math.Find", 100, 500),
    "summary": ("En.Sum", 70, 350),
    "summary_with_needles": ("Mix.Sum+NIAH", 70, 350),
    "repoqa_and_kv": ("Mix.RepoQA+KV", 88, 440),
}
"""The title of each data set, and its numbers of contexts and questions."""
_INSTRUCTIONS = tuple(filter(None, (text.partition("{")[0] for text in SHARED.values())))


def repeat_passage(messages: Sequence[Message]) -> str | None:
    """Repeat what follows the question's rarest word in the context.

    Returns None if the prompt does not start with one of SCBench's instructions.
    """
    first, question = messages[0]["content"], messages[-1]["content"][-PASSAGE:]
    if not first.startswith(_INSTRUCTIONS):
        return None
    context = first.removesuffix(question)
    places = {context.count(word): context.find(word) for word in question.split() if word in context}
    return context[places[min(places)] :][:PASSAGE] if places else ""


def _task(name: str, apart: bool) -> Task:
    title, contexts, questions = _ROWS[name]
    headline = tuple(MEASURES[subtask].metric for subtask in BUDGETS[name])
    by_turn = not apart and len(headline) == 1
    source = HubDataset("microsoft/SCBench", {"test": contexts}, f"scbench_{name}", labelled=False)
    return Task(
        name=f"{name}_apart" if apart else name,
        alias=name,
        title=title,
        template=NO_TEMPLATE,
        load=partial(load, name=name, apart=apart),
        score=partial(score, subtask=f"scbench_{name}", by_turn=by_turn),
        headline=headline,
        metrics=(*headline, *(BY_TURN if by_turn else ())),
        max_tokens=max(BUDGETS[name].values()),
        num_samples=questions,
        sources=lambda length: (source,),
        chat=True,
        cut="context_middle",
        record_shapes=SHAPES,
        extras=("code",) if "scbench_repoqa" in BUDGETS[name] else (),
        baseline=Baseline(repeat_passage, "B"),
    )


_MULTI_TURN, _MULTI_REQUEST = (tuple(_task(name, apart) for name in _ROWS) for apart in (False, True))

SCBENCH = read_benchmark(
    __package__,
    (
        Category("multi_turn", "Multi-turn", _MULTI_TURN),
        Category("multi_request", "Multi-request", _MULTI_REQUEST),
    ),
    metrics=[
        Metric(name, name.replace("_", " ").title(), "The score of the questions of this turn.") for name in BY_TURN
    ],
)
