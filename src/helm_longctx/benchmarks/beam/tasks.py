"""BEAM's questions about chats of four lengths, their loader, the judge's requests, and the scores.

Source: mohammadtavakoli78/BEAM at 2e44c8d, answer_generation.py, long_term_methods.py (`probing_question_evaluation`),
prompts.py (`unified_llm_judge_base_prompt`), evaluation.py (`evaluate_*`, `parse_json_response`, `align_with_llm`,
`event_ordering_score`, `llm_equivalence`) and report_results.py; how the rows of the hub become chats is in
src/beam/download_dataset.py at b2a3ee8. The official script asks with `chat_trunecated.json` where a chat has one. At 128k
such a chat is the start of the whole one. The official texts are read from these files, because the code has no license.
A record has the `rubric` and the `ability` of its question, and the replies of a judge in `judge`, or the replies of
several in `jury`.
"""

import ast
import json
import math
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cache, partial
from pathlib import Path
from typing import Any, NamedTuple

import orjson

from helm_longctx.data.download import Source
from helm_longctx.data.tables import read_table
from helm_longctx.errors import ShapeError
from helm_longctx.tasks import (
    NO_TEMPLATE,
    TEXTS,
    Baseline,
    Category,
    DataRoot,
    Example,
    FileRow,
    HubDataset,
    InputError,
    JsonLines,
    Judgement,
    Message,
    MetricValues,
    PinnedFile,
    ScorerInput,
    Settings,
    Shape,
    Task,
    Template,
    WebFile,
    read_benchmark,
    sizes_in_tokens,
    task_fields,
)
from helm_longctx.tasks.judge_scores import JUDGED, REPLIES, judge_scores
from helm_longctx.tasks.judgement import score_silence
from helm_longctx.tasks.prompt import read_messages
from helm_longctx.tasks.sampling import take_sample

_REPOSITORY = "mohammadtavakoli78/BEAM/2e44c8d0f7801ae28bd004482dabdf75f03d5665"
_pinned_file = partial(PinnedFile.of_repository, _REPOSITORY, target="beam")
PROMPTS = _pinned_file(
    "prompts.py", "2f630cc983ab0c34cfa80b1b4d340f5b51a9b4a3baa5af8aea9503c585eda06a"
)
EVALUATION = _pinned_file(
    "evaluation.py", "07098b60ed5c46d4bbafaced898c0abeb052d7e98c6d7631b120e4058c6897bb"
)
METHODS = _pinned_file(
    "long_term_methods.py",
    "db86199808295faf06ec313d9dfe1931d44d264b82d9b017c6effb5c417b321d",
)


class OfficialTexts(NamedTuple):
    """The official texts. A text around values is the list of its parts.

    Args:
        question: stands before a question.
        judge: what the judge is asked about an item of a rubric.
        system: the system message of the question whether two events are the same.
        same: that question, around the two events.
    """

    question: str
    judge: str
    system: str
    same: list[str]


@cache
def read_texts(root: DataRoot) -> OfficialTexts:
    """Read the official texts. The files are parsed, and no code of them is executed.

    Raises:
        InputError: a file is not the official one.
    """
    try:
        prompts, evaluation, methods = (
            ast.parse((root.path / file.path).read_text(encoding="utf-8"))
            for file in (PROMPTS, EVALUATION, METHODS)
        )
        assignments = []
        for node in prompts.body:
            if isinstance(node, ast.Assign):
                assignments.append(node)
        (judge,) = (
            ast.literal_eval(node.value)
            for node in assignments
            if ast.unparse(node.targets[0]) == "unified_llm_judge_base_prompt"
        )
        ((question,),) = _find_contents(methods, "probing_question_evaluation")
        (system,), same = _find_contents(evaluation, "llm_equivalence")
    except (OSError, SyntaxError, ValueError) as error:
        raise InputError(
            f"{root.path / 'beam'}: not BEAM's files; get them with: helm-longctx fetch beam"
        ) from error
    return OfficialTexts(
        question=question,
        judge=judge,
        system=system,
        same=same,
    )


def _find_contents(module: ast.Module, function: str) -> list[list[str]]:
    """Return the texts of messages that a function writes out, each as the parts around its values."""
    functions = [node for node in module.body if isinstance(node, ast.FunctionDef)]
    (node,) = (node for node in functions if node.name == function)
    texts = []
    for child in ast.walk(node):
        if not isinstance(child, ast.Dict):
            continue
        for key, value in zip(child.keys, child.values, strict=True):
            if key is None or ast.unparse(key) != "'content'":
                continue
            if isinstance(value, ast.JoinedStr):
                texts.append(_constants(value.values))
            elif isinstance(value, ast.Constant):
                texts.append(_constants([value]))
    return texts


def _constants(nodes: Iterable[ast.expr]) -> list[str]:
    constants = []
    for node in nodes:
        if isinstance(node, ast.Constant):
            constants.append(str(node.value))
    return constants


JUDGE = "openai/gpt-4.1-mini-2025-04-14"
"""The official judge: `gpt-4.1-mini`."""

ORDERING = "event_ordering"
ABILITIES = (
    "abstention",
    "contradiction_resolution",
    ORDERING,
    "information_extraction",
    "instruction_following",
    "knowledge_update",
    "multi_session_reasoning",
    "preference_following",
    "summarization",
    "temporal_reasoning",
)
METRICS = (
    *JUDGED,
    "rubric_score",
    "event_f1",
    "event_score",
    *(f"judge_score_{ability}" for ability in ABILITIES),
)


def judge_prompts(record: ScorerInput) -> Mapping[str, str]:
    """Return the judge's requests: for each item of the rubric, and of an order for each line of the answer and item.

    The official code asks whether a line is an item only until one is. All pairs are asked here, so that the
    requests do not wait for each other.
    """
    if "texts" not in record:
        raise InputError(
            "the record has no texts of BEAM's code: get them with helm-longctx fetch beam"
        )
    _, judge, _, (start, middle, end) = record["texts"]
    rubric = record["rubric"]
    answer = record["prediction"]
    prompts = {}
    for number, item in enumerate(rubric):
        prompt = judge.replace("<rubric_item>", item).replace("<llm_response>", answer)
        prompts[_name_item(number)] = prompt
    if record["ability"] == ORDERING:
        for line, first in _number_lines(answer).items():
            for number, item in enumerate(rubric):
                prompts[_name_pair(first, number)] = f"{start}{item}{middle}{line}{end}"
    return prompts


def _name_item(item: int) -> str:
    """Return the name of the request about an item."""
    return f"item {item + 1}"


def _name_pair(line: int, item: int) -> str:
    """Return the name of the request whether a line of the answer is an item."""
    return f"line {line + 1}, item {item + 1}"


def _number_lines(answer: str) -> dict[str, int]:
    """Return the distinct lines of an answer, each with the number of its first occurrence."""
    lines = answer.split("\n")
    numbers = {}
    for number, line in reversed([*enumerate(lines)]):
        numbers[line] = number
    return numbers


def read_item(reply: Any) -> Any:
    """Return the score in a reply about an item as it stands there, or None if there is none in 0…1."""
    if not isinstance(reply, str):
        return None
    text = reply.strip()
    if text.startswith("```"):
        text = find_fenced(text) or text
    try:
        try:
            content = json.loads(text)
        except json.JSONDecodeError:
            part = find_part(text)
            content = json.loads(part) if part else None
        score = content["score"]
        return score if 0 <= float(score) <= 1 else None
    except (ValueError, TypeError, LookupError, OverflowError, RecursionError):
        return None


def find_fenced(text: str) -> str:
    r"""Return the first object or list between fences, up to the last closing bracket before one, or empty without any.

    It is what the official pattern "```(?:json)?\s*(\[.*\]|\{.*\})\s*```" finds, but that one's time is quadratic in
    a text of fences that do not close.
    """
    last = {}
    for match in re.finditer(r"([\]}])\s*```", text):
        last[match[1]] = match.start()
    for opening in re.finditer(r"```(?:json)?\s*([\[{])", text):
        start = opening.start(1)
        end = last.get("]" if opening[1] == "[" else "}", -1)
        if end > start:
            return text[start : end + 1]
    return ""


def find_part(text: str) -> str:
    """Return the first text from a bracket to the next closing one of its kind, or empty without any.

    It is what the official pattern "(\\{.*?\\}|\\[.*?\\])" finds, but that one's time is quadratic in a text of
    brackets that do not close.
    """
    spans = []
    for opening, closing in ("{}", "[]"):
        start = text.find(opening)
        end = text.find(closing, start)
        if start >= 0 and end >= 0:
            spans.append((start, end + 1))
    if not spans:
        return ""
    start, end = min(spans)
    return text[start:end]


def is_same(reply: str) -> bool:
    """Return whether a reply says that a line is an item."""
    return "yes" in reply.lower()


def align(rubric: Sequence[str], answer: str, replies: Mapping[str, str]) -> list[str]:
    """Return the lines of an answer, each replaced by the first unused item that the judge takes for the same."""
    numbers = _number_lines(answer)
    unused = list(range(len(rubric)))
    aligned = []
    for line in answer.split("\n"):
        for item in unused:
            if is_same(replies[_name_pair(numbers[line], item)]):
                aligned.append(rubric[item])
                unused.remove(item)
                break
        else:
            aligned.append(line)
    return aligned


def score_order(rubric: Sequence[str], lines: Sequence[str]) -> MetricValues:
    """Return Kendall's tau b of the events' ranks in 0…1, F1 of the events, and the product of both.

    Events of equal rank, as a single one, have no tau, and then only F1 is returned.
    """
    from scipy.stats import kendalltau

    right = len({*rubric} & {*lines})
    wrong = sum(line not in rubric for line in lines)
    missed = sum(item not in lines for item in rubric)
    if right + wrong:
        precision = right / (right + wrong)
    else:
        precision = 0
    if right + missed:
        recall = right / (right + missed)
    else:
        recall = 0
    if precision + recall:
        f1 = 2 * precision * recall / (precision + recall)
    else:
        f1 = 0
    union = list(dict.fromkeys([*rubric, *lines]))
    scores = {"event_f1": float(f1)}
    ranks = []
    for events in (rubric, lines):
        rank = {}
        for number, event in enumerate(events, 1):
            rank[event] = number
        ranks.append([rank.get(event, len(union) + 1) for event in union])
    # SciPy warns about a single event.
    if len(union) > 1:
        tau = kendalltau(ranks[0], ranks[1])[0]
    else:
        tau = math.nan
    if math.isnan(tau):
        return scores
    return {
        "judge_score": float((tau + 1) / 2),
        "event_score": float((tau + 1) / 2 * f1),
        **scores,
    }


def _score_replies(record: ScorerInput, replies: Any) -> MetricValues:
    """Score the replies of a judge. There are no scores if one of them is missing or cannot be read."""
    rubric = record["rubric"]
    if not isinstance(replies, Mapping) or not rubric:
        return {}
    items = []
    for number in range(len(rubric)):
        items.append(read_item(replies.get(_name_item(number))))
    if None in items:
        return {}
    mean = {"rubric_score": sum(map(float, items)) / len(items)}
    if record["ability"] != ORDERING:
        try:
            # The official code cuts off the fraction: 0.5 counts as 0, and a text such as "0.5" is an error.
            return {"judge_score": sum(map(int, items)) / len(items), **mean}
        except ValueError:
            return {}
    for line in _number_lines(record["prediction"]).values():
        for item in range(len(rubric)):
            if not isinstance(replies.get(_name_pair(line, item)), str):
                return {}
    return {**score_order(rubric, align(rubric, record["prediction"], replies)), **mean}


def score(record: ScorerInput) -> MetricValues:
    """Return the score, also under the name of the question's ability."""
    if "rubric" not in record or "ability" not in record:
        return {}
    scores = judge_scores(
        record, "judge_score", lambda replies: _score_replies(record, replies)
    )
    if "judge_score" not in scores:
        return scores
    return {**scores, f"judge_score_{record['ability']}": scores["judge_score"]}


def read_reply(reply: str, record: ScorerInput) -> MetricValues:
    """Return the score in a reply about an item, or nothing if there is none."""
    value = read_item(reply)
    return {} if value is None else {"score": float(value)}


_JUDGEMENT = Judgement(
    judge_prompts,
    read_reply,
    lambda record: json.dumps(
        [record.get("texts"), record["rubric"], record["ability"]]
    ),
    max_tokens=4096,  # The official code sets no budget.
    silence_reply='{"score": 0}',
)


CHATS = {
    128 * 1024: ("100K", 20),
    500 * 1024: ("500K", 35),
    1024**2: ("1M", 35),
    10 * 1024**2: ("10M", 10),
}
"""The split and the number of chats of each length."""
LONGEST = 10 * 1024**2
QUESTIONS = 20
"""The number of questions about each chat."""
_ANSWERS = ("answer", "ideal_response", "ideal_answer", "ideal_summary")
"""The names that the abilities give the reference."""
TEXT = Template.whole(
    "{context}\nAnswer a question about the chat above. Write nothing besides the"
    " answer.\n\nQuestion: {question}"
)
"""Our prompt with the chat as a text."""

_Batches = list[tuple[dict[str, Any], tuple[Message, ...]]]
"""The parts of a chat: what is known of each, and its messages."""


_REPOSITORIES = {
    "Mohammadta/BEAM": "3205395e897e7318c7b094ef4e6047b9b82dbb03",
    "Mohammadta/BEAM-10M": "9b2096193fe74e2837e4713e483351e19817773c",
}
"""The commit of each data set."""
_DIGESTS = {
    "data/100K-00000-of-00001.parquet": "c0519be25907005ba873c927c50877471d550873039d96c041554d0075a78ace",
    "data/1M-00000-of-00001.parquet": "41b5acbbb55a586b1305514ef9d9fb03365d9b3331b598a1c2dd7603d93ef533",
    "data/10M-00000-of-00002.parquet": "31d96fd47ec56221d202e68792f26c00e49467dd4b36ee105c36ebd19ef78ad5",
    "data/10M-00001-of-00002.parquet": "a4f13fe25af51d57405ae41008689c31d1421377f3efde56a024b441deb2ee65",
}
"""The SHA-256 of the files, as public programs state it. That of 500K is not known."""


def find_source(length: int) -> HubDataset:
    """Return the questions and the whole chats of a length."""
    split, chats = CHATS[length]
    is_long = length == LONGEST
    if is_long:
        name = "Mohammadta/BEAM-10M"
    else:
        name = "Mohammadta/BEAM"
    columns = ("conversation_id", "probing_questions", "plans" if is_long else "chat")
    return HubDataset(
        name,
        {split: chats},
        columns={split: columns},
        labelled=False,
        commit=_REPOSITORIES[name],
        sha256={
            file: digest for file, digest in _DIGESTS.items() if f"/{split}-" in file
        },
    )


def find_truncated(length: int) -> dict[str, WebFile]:
    """Return the truncated chats of a length in the official repository, by the chat's id. Their git ids are checked."""
    split, _ = CHATS[length]
    files = {}
    for row in read_table(__package__, "truncated.csv"):
        if row["split"] == split:
            name = f"chats/{split}/{row['chat']}/chat_trunecated.json"
            url = f"https://raw.githubusercontent.com/{_REPOSITORY}/{name}"
            files[row["chat"]] = WebFile(url, f"beam/{name}", blob=row["blob"])
    return files


def _find_sources(length: int) -> tuple[Source, ...]:
    """Return everything that a length needs."""
    return (
        find_source(length),
        *find_truncated(length).values(),
        PROMPTS,
        EVALUATION,
        METHODS,
    )


@take_sample
def load(
    task: Task,
    settings: Settings,
    root: DataRoot,
    *,
    is_text: bool,
) -> Iterator[Example]:
    """Yield the questions in the order of the chats, and of the abilities of each."""
    path = find_source(settings.level).paths[0]
    if settings.chats == "truncated":
        truncated = find_truncated(settings.level)
    else:
        truncated = {}
    texts = read_texts(root)
    for row in JsonLines(
        root / path, {"conversation_id": str, "probing_questions": str}
    ):
        is_long = settings.level == LONGEST
        batches = _read_batches(row, is_long)
        if file := truncated.get(row["conversation_id"]):
            batches = _read_truncated(root / file.path, batches, is_long)
        messages: list[Message] = []
        # Each text is made once for all questions about a chat.
        written: list[str] = []
        marks: list[tuple[int, Mapping[str, Any]]] = []
        start = 0
        for known, batch in batches:
            messages += batch
            if is_text:
                lines = []
                for message in batch:
                    lines.append(f"{message['role']}: {message['content']}\n\n")
                marks.append((start, known))
                written.append("".join(lines))
                start += len(written[-1])
        context = "".join(written)
        earlier: list[Message] = []
        for index, (ability, number, asked) in enumerate(_read_questions(row)):
            question = asked["question"]
            turn: Message = {"role": "user", "content": texts.question + question}
            fields = {"context": context, "question": question}
            if not is_text:
                fields = {"question": question}
            references = []
            for name in _ANSWERS:
                if isinstance(asked.get(name), str):
                    references.append(asked[name])
            yield Example(
                id=f"{row['conversation_id']}-{ability}-{number}",
                fields=fields,
                references=references[:1],
                source="hub",
                messages=[] if is_text else [*messages, *earlier, turn],
                record={
                    "rubric": asked["rubric"],
                    "ability": ability,
                    "texts": list(texts),
                },
                group=f"{CHATS[settings.level][0]} {row['conversation_id']}",
                marks=marks,
            )
            # The official code adds each question but the first to the chat that it keeps for the next one.
            earlier += [turn] if index else []


def _read_batches(row: FileRow, is_long: bool) -> _Batches:
    """Return the batches of a chat. One of 10m has several plans, each with its batches."""
    try:
        chat = row["chat"] if not is_long else []
        for plan in row["plans"] if is_long else []:
            chat += plan["chat"]
        batches = []
        for batch in chat:
            # The first message of a batch has its date.
            date = batch[0].get("time_anchor")
            known = {"date": date} if isinstance(date, str) else {}
            # The last message of a batch is the assistant's.
            turns = read_messages(str(row), [*batch, {"role": "user", "content": ""}])[
                :-1
            ]
            batches.append((known, turns))
        return batches
    except (TypeError, LookupError, AttributeError) as error:
        raise ShapeError(
            f"{row}: the chat must be a list of lists of messages"
        ) from error


def _read_truncated(path: Path, whole: _Batches, is_long: bool) -> _Batches:
    """Return the batches of a truncated chat. It starts as the whole one does."""
    try:
        content = orjson.loads(path.read_bytes())
        if is_long:
            plans = []
            for plan in content:
                plans.append(next(iter(plan.values())))
        else:
            plans = [content]
        chat = []
        for plan in plans:
            chat += [_flatten(batch) for batch in plan]
        batches = _read_batches(FileRow({"chat": chat}, path, 1), is_long=False)
    except OSError as error:
        raise InputError(f"{path}: {error.strerror}") from error
    except (ValueError, TypeError, LookupError, AttributeError, StopIteration) as error:
        raise ShapeError(f"{path}: it must be a list of batches with turns") from error
    if not batches or batches[0][1][:1] != whole[0][1][:1]:
        raise ShapeError(f"{path}: it is not the start of the chat of the data set")
    return batches


def _flatten(batch: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Return the messages of a batch of turns."""
    messages: list[dict[str, Any]] = []
    for turn in batch["turns"]:
        messages += turn
    return messages


def _read_questions(row: FileRow) -> Iterator[tuple[str, int, dict[str, Any]]]:
    """Yield the questions about a chat with their abilities and numbers. The column is a Python literal."""
    try:
        for ability, questions in ast.literal_eval(row["probing_questions"]).items():
            for number, asked in enumerate(questions, 1):
                TEXTS.check(f"{row}: rubric of {ability} {number}", asked["rubric"])
                if ability not in ABILITIES or not isinstance(asked["question"], str):
                    raise InputError(
                        f"{row}: {ability} {number} is no question of {', '.join(ABILITIES)}"
                    )
                yield ability, number, asked
    except (
        ValueError,
        SyntaxError,
        TypeError,
        LookupError,
        AttributeError,
        RecursionError,
        MemoryError,
    ) as error:
        raise ShapeError(
            f"{row}: column 'probing_questions' must have questions with rubrics by ability"
        ) from error


def _task(name: str, title: str, is_text: bool) -> Task:
    return Task(
        name=name,
        title=title,
        template=TEXT if is_text else NO_TEMPLATE,
        load=partial(load, is_text=is_text),
        score=score,
        scorers=score_silence(score),
        metrics=METRICS,
        sizes=sizes_in_tokens(CHATS),
        num_samples={length: chats * QUESTIONS for length, (_, chats) in CHATS.items()},
        sources=_find_sources,
        official_judge=JUDGE,
        judgement=_JUDGEMENT,
        cut="context" if is_text else "nothing",
        record_shapes={
            "rubric": TEXTS,
            "ability": Shape(
                f"one of {', '.join(ABILITIES)}", lambda value: value in ABILITIES
            ),
            **REPLIES,
        },
        baseline=Baseline("span", "There is no information about this.")
        if is_text
        else None,
        **task_fields(__package__),
    )


_JUDGE = f"{__package__}.judge.RubricAnnotator"
BEAM = read_benchmark(
    __package__,
    [
        Category("", "", (_task("questions", "BEAM", is_text=False),), judge=_JUDGE),
        Category(
            "text",
            "Text",
            (_task("text_questions", "BEAM, Text", is_text=True),),
            averaged=False,
            judge=_JUDGE,
        ),
    ],
)
