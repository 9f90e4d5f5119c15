"""The methods that read a context part by part: `compact`, `map_reduce`, `refine` and `read_twice`.

- `compact`: the context comes in turns, and the model summarizes what it has whenever that is too long. This is how
  agents go on beyond their window: at a threshold, everything so far is replaced by a summary that the model writes
  (compaction in Claude Code and in the context management of the Messages API; the summary agent of Zhang et al., 2025,
  arXiv 2512.24601). There, a turn is a message or a result of a tool. Here it is a part of the context, so a turn needs
  no request. The prompt does not have the question: who compacts a stream does not know what will be asked. So the
  summaries of all questions about a context are equal, and are sent once.
- `map_reduce`: each part is asked on its own for what the question needs, at the same time, and the answer comes from
  their notes (LangChain's `MapReduceDocumentsChain` for questions; LLM×MapReduce, arXiv 2410.09342). The notes
  are merged in the same way again while they are longer than a part.
- `refine`: the parts come one after the other, and the model rewrites its notes with each (LangChain's
  `RefineDocumentsChain`; "incremental updating" of BooookScore, arXiv 2310.00785).
- `read_twice`: first each part is summarized without the question, then each is read again together with the summaries
  of all (ReadTwice, arXiv 2105.04241, with a model that is only asked; ReadAgent, arXiv 2402.09727, has such gists).

The published prompts ask for an answer in a form of their own. Here the last request is always the task's own prompt
with the notes as its context, so that the answer has the form that is scored. The published code has no common wording,
so all wordings are ours.
"""

from collections.abc import Iterable, Sequence

from helm_longctx.tasks.methods.method import Method, Question
from helm_longctx.tasks.token_estimate import estimate_tokens

SUMMARIZE = (
    "The text below is too long to keep. It may start with a summary of what came"
    " before. Write a new summary that takes its place: questions about all of it will"
    " be asked later, and you will see only your summary. Keep names, numbers, keys,"
    " dates and places word for word. Write only the"
    " summary.\n\n<text>\n{text}\n</text>"
)


def compact(question: Question) -> str:
    """Answer from the last summary and the turns after it."""
    turn, threshold, kept = (
        question.arguments[name] for name in ("turn", "threshold", "kept")
    )
    text = ""
    tokens = 0
    read = 0
    cuts = []
    for part in question.parts(turn):
        size = estimate_tokens(part.text)
        if tokens and tokens + size > threshold:
            text = (
                question.ask(SUMMARIZE.format(text=text), kept, label="compact")
                + "\n\n"
            )
            tokens = estimate_tokens(text)
            cuts.append(read / len(question.context))
        text += part.text
        tokens += size
        read += len(part.text)
    question.note(
        compactions=len(cuts),
        retained_tokens=tokens,
        cuts=cuts,
    )
    return question.answer(text)


COMPACT = Method(
    "compact",
    "Reads the context in turns, and replaces what it has by a summary of the model"
    " whenever that exceeds a threshold.",
    answer=compact,
    arguments={"turn": 8000, "threshold": 32_000, "kept": 2000},
)


NOTHING = "none"
"""What a model writes about a part that has nothing for the question."""

EXTRACT = (
    "Below is part {number} of {total} of a long text. Copy from it, word for word,"
    " everything that can help with the"
    " task below, also if it is only a piece of the answer. Write nothing else. If"
    f" there is nothing, write: {NOTHING}"
    "\n\n<part>\n{part}\n</part>\n\nThe task about the whole text:\n{task}"
)
REWRITE = (
    "You read a long text part by part and take notes for the task below. Below are"
    " your notes so far and part {number} of {total}. Write the notes anew, with"
    " everything from both that can help with the task, word for word where it matters."
    " Write only the"
    " notes.\n\n<notes>\n{notes}\n</notes>\n\n<part>\n{part}\n</part>\n\nThe task about"
    " the whole text:\n{task}"
)
GIST = (
    "Below is part {number} of {total} of a long text. Summarize it in a few sentences,"
    " with its names, numbers and events. Write only the"
    " summary.\n\n<part>\n{part}\n</part>"
)
READ_AGAIN = (
    "You have read a long text once. Below are your summaries of its {total} parts,"
    " and part {number} for a second"
    " reading. Copy from the part, word for word, everything that can help with the"
    " task below together with the rest"
    f" of the text. Write nothing else. If there is nothing, write: {NOTHING}"
    "\n\n<summaries>\n{gists}\n</summaries>\n\n<part>\n{part}\n</part>\n\nThe task"
    " about the whole text:\n{task}"
)


def map_reduce(question: Question) -> str:
    """Answer from notes on each part."""
    size = question.arguments["part"]
    budget = question.arguments["notes"]
    texts = [part.text for part in question.parts(size)]
    level = 0
    while True:
        label = f"reduce {level}" if level else "map"
        notes = _ask_of_all(question, EXTRACT, texts, budget, label)
        joined = "\n\n".join(notes)
        # Notes that do not get shorter are not merged again.
        if (
            estimate_tokens(joined) <= size
            or len(notes) < 2
            or len(notes) == len(texts) == 1
        ):
            return question.answer(joined, label="reduce")
        groups = _group(notes, size)
        if len(groups) >= len(texts):
            return question.answer(joined, label="reduce")
        texts = groups
        level += 1


def refine(question: Question) -> str:
    """Answer from the notes after the last part."""
    parts = question.parts(question.arguments["part"])
    notes = NOTHING
    for number, part in enumerate(parts, 1):
        prompt = REWRITE.format(
            number=number,
            total=len(parts),
            notes=notes,
            part=part.text,
            task=question.task,
        )
        notes = question.ask(prompt, question.arguments["notes"], label="refine")
    return question.answer(notes)


def read_twice(question: Question) -> str:
    """Answer from notes on each part with the summaries of all parts at hand."""
    texts = [part.text for part in question.parts(question.arguments["part"])]
    budget = question.arguments["notes"]
    numbered = []
    for number, text in enumerate(texts, 1):
        numbered.append(
            GIST.format(
                number=number,
                total=len(texts),
                part=text,
            )
        )
    gists = question.ask_all(numbered, budget, label="first reading")
    shown = "\n".join(f"{number}. {gist}" for number, gist in enumerate(gists, 1))
    notes = _ask_of_all(
        question, READ_AGAIN, texts, budget, "second reading", gists=shown
    )
    return question.answer("\n\n".join(notes))


def _ask_of_all(
    question: Question,
    template: str,
    texts: Sequence[str],
    budget: int,
    label: str,
    **fields: str,
) -> list[str]:
    """Return the notes on each text, without those of texts that have nothing."""
    prompts = []
    for number, text in enumerate(texts, 1):
        prompts.append(
            template.format(
                number=number,
                total=len(texts),
                part=text,
                task=question.task,
                **fields,
            )
        )
    notes = question.ask_all(prompts, budget, label)
    return [note for note in notes if note.strip(" .").lower() != NOTHING]


def _group(notes: Iterable[str], size: int) -> list[str]:
    """Join neighbouring notes as long as they fit into a part."""
    groups: list[list[str]] = []
    room = 0
    for note in notes:
        tokens = estimate_tokens(note)
        if not groups or tokens > room:
            groups.append([])
            room = size
        groups[-1].append(note)
        room -= tokens
    return ["\n\n".join(group) for group in groups]


MAP_REDUCE = Method(
    "map_reduce",
    "Asks each part of the context on its own, and answers from what was found.",
    answer=map_reduce,
    arguments={"part": 16_000, "notes": 1024},
)
REFINE = Method(
    "refine",
    "Reads the context part by part with notes that the model rewrites, and answers"
    " from the last notes.",
    answer=refine,
    arguments={"part": 16_000, "notes": 1024},
)
READ_TWICE = Method(
    "read_twice",
    "Summarizes each part, reads each again with all summaries, and answers from what was found.",
    answer=read_twice,
    arguments={"part": 16_000, "notes": 1024},
)
