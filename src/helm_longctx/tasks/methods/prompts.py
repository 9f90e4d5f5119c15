"""The methods that change only what is asked: `closed_book`, `question_only`, `cot`, `retrieve`, `retrieve_reason`."""

from dataclasses import replace

from helm_longctx.errors import InputError
from helm_longctx.tasks.methods.chunks import find_best, join, split
from helm_longctx.tasks.methods.method import Method
from helm_longctx.tasks.prompt import CONTEXT, FollowUp
from helm_longctx.tasks.task import Example, Settings, Task

FACT_TOKENS = 1024
"""The output budget of the first request."""

FACTS = (
    "\n\nDo not answer yet. First copy from the text above, word for word, every fact that is needed for the answer,"
    " each on a line of its own. After each fact, write in brackets where it is in the text, such as the document, the"
    " heading, or the words before it. Write nothing else. If the text has no such fact, write: none"
)
"""What the first request asks after the task's prompt."""


def _ask_for_facts(task: Task, settings: Settings, example: Example) -> Example:
    """Return the example with a request for facts, and a second one with the facts instead of the context.

    The two requests follow ALR² (Li et al., 2024, arXiv 2410.03227). The paper's models are trained for both;
    here the model is only asked. No published code is known, so the wording of the first request is ours. The second
    one is the task's own prompt.
    """
    if example.follow_up:
        raise InputError(
            f"{task.name} itself has two requests, so method=retrieve_reason cannot ask it; leave it out"
        )
    prompt = task.prompt(example)
    turn = prompt.user_turn
    assert prompt.context  # the template has a context
    start, end = prompt.context
    budget = example.max_tokens or task.output_tokens(settings)
    return replace(
        example,
        messages=[{"role": "user", "content": turn + FACTS}],
        context=prompt.context,
        follow_up=FollowUp(
            (turn[:start], turn[end:]), budget, prompt.separator + prompt.answer_prefix
        ),
        # The second request cannot have a larger budget than the first.
        max_tokens=max(FACT_TOKENS, budget),
    )


CLOSED_BOOK = Method(
    "closed_book",
    "Asks with the task's prompt, whose context is left out.",
    lambda task, settings, example: replace(
        example, fields={**example.fields, CONTEXT: ""}
    ),
)

QUESTION_ONLY = Method(
    "question_only",
    "Asks the question alone, without context, demonstrations and any mention of a text. Scores are floors.",
    lambda task, settings, example: replace(
        example, template=task.question_only, depth=None
    ),
    fits=lambda task: task.question_only is not None,
    needs="a prompt for the question alone",
    is_floor=True,
)

COT = Method(
    "cot",
    "Asks for reasoning before the answer, by the prompts of the benchmark.",
    lambda task, settings, example: (
        task.reasoning.ask(example) if task.reasoning else example
    ),
    first_tokens=lambda task: task.reasoning.max_tokens if task.reasoning else 0,
    fits=lambda task: task.reasoning is not None,
    needs="prompts for reasoning",
)

RETRIEVE_REASON = Method(
    "retrieve_reason",
    "Asks for the facts with their places in a first request, and for the answer from these in a second one (ALR²).",
    _ask_for_facts,
    first_tokens=lambda task: FACT_TOKENS,
)


def _retrieve(task: Task, settings: Settings, example: Example) -> Example:
    """Return the example with the best `chunks` chunks of at most `chunk_size` characters, in the text's order."""
    most, size = (settings.method_arguments[name] for name in RETRIEVE.arguments)
    pieces = split(example.fields[CONTEXT], size)
    indices = find_best(pieces, example.question or "", most)
    return replace(example, fields={**example.fields, CONTEXT: join(pieces, indices)})


RETRIEVE = Method(
    "retrieve",
    "Asks with the task's prompt, whose context is the chunks that match the question best by BM25.",
    _retrieve,
    arguments={"chunks": 8, "chunk_size": 1500},
    extra="retrieval",
)
