"""Our prompts for HELMET's questions: with reasoning before the answer (`method=cot`), and without any text.

The paper asks with and without chains of thought, but the repository has no such demonstrations. So the wording is
ours, and so is the reasoning of demonstrations: it quotes the sentence with the answer.
"""

import re
from collections.abc import Iterator
from dataclasses import replace

from helm_longctx.data.jsonl import Row
from helm_longctx.tasks import Example, FollowUp, Reasoning, Template

ANSWER_TOKENS = 20
"""The output budget of HELMET's answers in RAG, and so of the second request."""

_REASONING = Template(
    "Use the given documents to answer the question. First write in one or two"
    " sentences what the documents say about"
    " it, and then a concise and short answer. Use the following format:\nReasoning:"
    " [reasoning]\nAnswer: [answer]\n\n"
    "{demos}{context}\n\nQuestion: {question}\nReasoning:",
    "",
)
_DEMO = "{documents}\n\nQuestion: {question}\nReasoning: {reasoning}\nAnswer: {answer}"
_NO_QUOTE = "No document states the answer in these words, but they are about the subject of the question."
_SENTENCE_END = re.compile(r"(?<=[.!?])\s+")

_SHORT = "Write your answer in the following format:\nAnswer: [answer]\n\nQuestion: {question}"
QUESTION = Template(
    f"Write a concise and short answer to the question. {_SHORT}", "Answer:"
)
BOOK_QUESTION = Template(
    f"Answer the question about a novel or a movie script as concisely as you can. {_SHORT}",
    "Answer:",
)
BOOK_CHOICE = Template(
    "Choose the answer to the question about a novel from the options. Write only its"
    " letter (A, B, C, or D).\n\n"
    "Question: {question}\nOptions:\n{options}",
    "Answer:",
)
"""The question alone (`method=question_only`), with HELMET's answer prefix."""


def _list_sentences(demo: Row) -> Iterator[tuple[str, str]]:
    for passage in demo["ctxs"]:
        for sentence in _SENTENCE_END.split(passage["text"]):
            yield passage["title"], sentence


def write_demonstration(demo: Row, documents: str) -> str:
    """Return a demonstration with our reasoning. It quotes the first sentence with an answer."""
    answers = []
    for answer in demo["answers"]:
        answers.append(str(answer).lower())
    reasoning = _NO_QUOTE
    for title, sentence in _list_sentences(demo):
        if any(answer in sentence.lower() for answer in answers):
            reasoning = f'The document "{title}" says: "{sentence.strip()}"'
            break
    return _DEMO.format(
        documents=documents,
        question=demo["question"],
        reasoning=reasoning,
        answer=demo["answers"][0],
    )


def _ask_to_reason(example: Example) -> Example:
    """Return a question with a request for reasoning, and a second one that continues it with the answer."""
    prompt = _REASONING.render(example.fields)
    return replace(
        example,
        messages=prompt.messages,
        context=prompt.context,
        follow_up=FollowUp((f"{prompt.user_turn} ", "\nAnswer:"), ANSWER_TOKENS),
        max_tokens=REASONING.max_tokens,
    )


REASONING = Reasoning(_ask_to_reason, 256)
