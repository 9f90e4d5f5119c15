"""The task of perplexity: the texts in a folder, cut into pieces of the length, and scored by `metric=perplexity`."""

from collections.abc import Iterator
from pathlib import Path

from helm_longctx.tasks import (
    DataRoot,
    Example,
    InputError,
    MetricValues,
    ScorerInput,
    Settings,
    Task,
    Template,
    read_benchmark,
    sizes_in_tokens,
    task_fields,
)
from helm_longctx.tasks.request_settings import LONGPPL, PERPLEXITY
from helm_longctx.tasks.sampling import take_sample
from helm_longctx.tasks.task import TEXT_GROUP

_PATTERN = "*.txt"


@take_sample
def load(task: Task, settings: Settings, root: DataRoot) -> Iterator[Example]:
    """Yield the pieces of the folder's texts, each of the length in tokens, in the order of the files' names.

    The rest of a file that is shorter than the length is left out.

    Raises:
        InputError: `path` is missing, no file is long enough, or a file is not UTF-8.
    """
    if settings.path is None:
        raise InputError(f"ppl: path is missing; give a folder with texts ({_PATTERN})")
    if settings.codec is None:
        raise InputError(
            "ppl: count_with is missing; give the name or the folder of the model's tokenizer"
        )
    is_long_enough = False
    for file in sorted(Path(settings.path).glob(_PATTERN)):
        try:
            ids = settings.codec.encode(file.read_text(encoding="utf-8"))
        except UnicodeDecodeError as error:
            raise InputError(f"{file} is not UTF-8; convert it") from error
        for start in range(0, len(ids) - settings.level + 1, settings.level):
            is_long_enough = True
            # A character whose tokens were divided has lost its bytes.
            text = settings.codec.decode(ids[start : start + settings.level]).strip(
                "\ufffd"
            )
            yield Example(
                id=f"{file.stem}-{start // settings.level}",
                fields={"context": text},
                references=[],
                source="official",
                group=f"{TEXT_GROUP}{file.name}",
            )
    if not is_long_enough:
        raise InputError(
            f"ppl: no text ({_PATTERN}) in {settings.path} has {settings.level} tokens;"
            " give longer texts"
        )


def score(record: ScorerInput) -> MetricValues:
    """Return nothing: the score is made of log-probabilities."""
    return {}


_TASK = Task(
    name="text",
    title="Text",
    template=Template.whole("{context}"),
    load=load,
    score=score,
    unscored=f"only metric={PERPLEXITY} and metric={LONGPPL} give it a value",
    sizes=sizes_in_tokens(),
    **task_fields(__package__),
)

PPL = read_benchmark(__package__, (_TASK,))
