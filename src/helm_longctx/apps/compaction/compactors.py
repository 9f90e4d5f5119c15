"""Compactors: what takes the place of a transcript.

A compactor gets messages and returns messages. The baselines keep everything, nothing, or the last tokens. The others are
the method `compact` with a model, a function in Python, a command, and a server's own compaction (`endpoints.py`).
"""

from __future__ import annotations

import os
import re
import shlex
import shutil
import signal
import subprocess
import tempfile
import threading
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import orjson

from helm_longctx.apps.compaction.asking import AskedModel, add_dollars
from helm_longctx.apps.compaction.transcripts import (
    USER,
    TranscriptMessage,
    count_tokens,
    from_openai,
    render,
    to_openai,
)
from helm_longctx.errors import InputError, bad_argument, shorten
from helm_longctx.models.apis.calls import call_all, check_cancellation
from helm_longctx.parts import import_user_module
from helm_longctx.redaction.abbreviation import describe_error
from helm_longctx.tasks.lengths import parse_length
from helm_longctx.tasks.methods.method import Question, Step
from helm_longctx.tasks.methods.method import Reply as StepReply
from helm_longctx.tasks.methods.reading import COMPACT
from helm_longctx.tasks.token_estimate import estimate_tokens

WHOLE = "whole"
LAST = "last"
NOTHING = "nothing"
BASELINES = (WHOLE, LAST, NOTHING)
"""The names of the baselines: the ceiling, the end of the transcript, and the floor."""

_FUNCTION = re.compile(r"[A-Za-z_][\w.]*:[A-Za-z_]\w*")
_LABEL = re.compile(r"([A-Za-z][\w.-]*)=(?=\S)(.+)", re.DOTALL)
_INPUT, _OUTPUT = ("{input}", "{output}")

_LARGEST = 64 << 20
"""Most bytes that a command may write: a transcript of a million tokens has about four."""

_PARALLEL = 8
"""Requests of one compaction that are sent at the same time."""


class CompactionError(Exception):
    """A compactor has failed on a transcript. The text says why, without parts of the transcript."""


@dataclass(frozen=True)
class Compacted:
    """What a compactor returned.

    Args:
        dollars: the price of its requests. None if it is not known.
        seconds: how long it took, without what an earlier command has done of it.
        sizes: the estimated number of tokens that were left after each round.
    """

    messages: Sequence[TranscriptMessage]
    dollars: float | None = 0.0
    requests: int = 0
    seconds: float = 0.0
    sizes: Sequence[int] = ()

    @property
    def tokens(self) -> int:
        """The estimated number of tokens that are left."""
        return count_tokens(self.messages)


class Compactor(ABC):
    """What takes the place of a transcript.

    Attributes:
        name: its name in tables.
        identity: what tells its results from those of other compactors, for later commands.
        is_kept: whether its results are kept for later commands. Those of baselines are made again.
    """

    is_kept = True

    def __init__(self, name: str, identity: str = ""):
        self.name = name
        self.identity = identity or name

    @abstractmethod
    def compact(self, messages: Sequence[TranscriptMessage], keep: int) -> Compacted:
        """Return what takes the place of messages.

        Args:
            keep: the tokens at the end that are not asked about.

        Raises:
            CompactionError: there is no result.
            InputError: the limit on the cost has no room for a request.
        """

    def estimate(self, tokens: int) -> tuple[int, int] | None:
        """Return the tokens of prompts, and of outputs, that the compaction of so many tokens needs at most.

        None stands for a program whose requests are not known.
        """
        return 0, 0

    def guess_size(self, tokens: int, keep: int) -> int:
        """Return about how many tokens are left of so many."""
        return keep


class Whole(Compactor):
    """Keeps everything."""

    is_kept = False

    def __init__(self) -> None:
        super().__init__(WHOLE)

    def compact(self, messages: Sequence[TranscriptMessage], keep: int) -> Compacted:
        """Return the messages."""
        return Compacted(messages)

    def guess_size(self, tokens: int, keep: int) -> int:
        """Return all of them."""
        return tokens


class Nothing(Compactor):
    """Keeps nothing."""

    is_kept = False

    def __init__(self) -> None:
        super().__init__(NOTHING)

    def compact(self, messages: Sequence[TranscriptMessage], keep: int) -> Compacted:
        """Return no message."""
        return Compacted(())

    def guess_size(self, tokens: int, keep: int) -> int:
        """Return none of them."""
        return 0


class Last(Compactor):
    """Keeps the last tokens, and of the first message that does not fit its end."""

    is_kept = False

    def __init__(self) -> None:
        super().__init__(LAST)

    def compact(self, messages: Sequence[TranscriptMessage], keep: int) -> Compacted:
        """Return the last messages."""
        kept: list[TranscriptMessage] = []
        left = keep
        for message in reversed(messages):
            if message.tokens > left:
                if not kept:
                    share = left / message.tokens
                    start = round(len(message.text) * (1 - share))
                    kept.append(replace(message, text=message.text[start:]))
                break
            left -= message.tokens
            kept.append(message)
        return Compacted(kept[::-1])


class FunctionCompactor(Compactor):
    """A function in Python: messages in OpenAI's form → messages, or a text. One transcript is compacted at a time."""

    def __init__(self, name: str, where: str):
        super().__init__(name, where)
        self._function = _load_function(where)
        self._lock = threading.Lock()

    def compact(self, messages: Sequence[TranscriptMessage], keep: int) -> Compacted:
        """Call the function."""
        plain = to_openai(messages)
        with self._lock:
            try:
                made = self._function(plain)
            except Exception as error:  # of the user's code
                # Its text can have parts of the transcript.
                raise CompactionError(
                    f"the function raised {type(error).__name__}"
                ) from error
        if isinstance(made, Iterator):
            made = list(made)
        try:
            # What the function pays for is not known.
            return Compacted(from_openai(made), dollars=None)
        except ValueError as error:
            raise CompactionError(str(error)) from None

    def estimate(self, tokens: int) -> tuple[int, int] | None:
        """Return None: what the function does is not known."""
        return None


def _load_function(where: str) -> Callable[[list[dict[str, Any]]], object]:
    """Import a function from an installed module, or from one in the folder of the command."""
    module, _, name = where.partition(":")
    try:
        function = getattr(import_user_module(module), name, None)
    except Exception as error:  # of the user's module
        raise InputError(
            f"compaction: --compactor={where}: the module cannot be imported:"
            f" {describe_error(error)}"
        ) from error
    if not callable(function):
        raise InputError(
            f"compaction: --compactor={where}: the module has no function {name}"
        )
    made: Callable[[list[dict[str, Any]]], object] = function
    return made


class CommandCompactor(Compactor):
    """A command that reads JSON lines of messages in OpenAI's form, and writes such lines, or a text.

    It is started without a shell: its words are those of the option, and nothing in a transcript can be one.

    Args:
        text: its words, as a shell would split them. `{input}` and `{output}` are the names of files. Without them it
            reads its standard input and writes its standard output.
        seconds: how long it may take.

    Raises:
        InputError: there is no such program.
    """

    def __init__(
        self,
        name: str,
        text: str,
        seconds: float,
    ):
        super().__init__(name, text)
        try:
            self._words = shlex.split(text)
        except ValueError as error:
            raise bad_argument("compaction", "--compactor", text, str(error)) from None
        program = self._words[0]
        if shutil.which(program) is None:
            raise InputError(
                f"compaction: --compactor={shorten(text)}: there is no program"
                f" {program}; give compact, server, MODULE:FUNCTION, or a command"
            )
        self._seconds = seconds

    def compact(self, messages: Sequence[TranscriptMessage], keep: int) -> Compacted:
        """Run the command in the folder of ours, with files of its own."""
        with tempfile.TemporaryDirectory(prefix="compaction-") as folder:
            source = Path(folder) / "input.jsonl"
            target = Path(folder) / "output.jsonl"
            with source.open("wb") as file:
                for message in to_openai(messages):
                    file.write(orjson.dumps(message) + b"\n")
            words = []
            for word in self._words:
                filled = word.replace(_INPUT, str(source))
                words.append(filled.replace(_OUTPUT, str(target)))
            takes_input = any(_INPUT in word for word in self._words)
            gives_output = any(_OUTPUT in word for word in self._words)
            printed = Path(folder) / "printed"
            self._run(words, os.devnull if takes_input else str(source), printed)
            written = target if gives_output else printed
            return Compacted(_read_written(written), dollars=None)

    def _run(
        self,
        words: Sequence[str],
        source: str,
        printed: Path,
    ) -> None:
        with open(source, "rb") as read, printed.open("wb") as write:
            process = subprocess.Popen(
                words,
                stdin=read,
                stdout=write,
                stderr=subprocess.DEVNULL,
                start_new_session=True,
            )
            try:
                status = process.wait(self._seconds)
            except BaseException as error:
                _end_process(process)
                if isinstance(error, subprocess.TimeoutExpired):
                    raise CompactionError(
                        f"the command took more than {self._seconds:g} seconds"
                    ) from None
                raise
        if status:
            raise CompactionError(f"the command ended with the status {status}")

    def estimate(self, tokens: int) -> tuple[int, int] | None:
        """Return None: what the command does is not known."""
        return None


def _end_process(process: subprocess.Popen[bytes]) -> None:
    """End a process that we started, with those that it has started."""
    with suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()


def _read_written(path: Path) -> list[TranscriptMessage]:
    """Read what a command wrote: JSON lines or a JSON document of messages, or any other text as one message."""
    if not path.exists():
        raise CompactionError("the command wrote no file of output")
    if path.stat().st_size > _LARGEST:
        raise CompactionError(f"the command wrote more than {_LARGEST >> 20} MiB")
    content = path.read_bytes()
    if content.lstrip()[:1] not in (b"{", b"["):
        return from_openai(content.decode("utf-8", "replace").strip())
    try:
        rows = _parse_rows(content)
    except orjson.JSONDecodeError:
        # A summary can begin with a bracket.
        return from_openai(content.decode("utf-8", "replace").strip())
    try:
        return from_openai(rows)
    except ValueError as error:
        raise CompactionError(str(error)) from None


def _parse_rows(content: bytes) -> Any:
    try:
        return orjson.loads(content)
    except orjson.JSONDecodeError:
        lines = []
        for line in content.split(b"\n"):
            if line.strip():
                lines.append(line)
        return [orjson.loads(line) for line in lines]


class WithMethod(Compactor):
    """The method `compact`: a model summarizes what it has whenever that is too long (`tasks/methods/reading.py`).

    A transcript is read in turns, as a context is. By default, the threshold is the method's own, or half of the
    transcript if that is less, so that each transcript is compacted at least once.

    Args:
        arguments: arguments of the method that are given.
        model: what writes the summaries.
    """

    def __init__(
        self,
        name: str,
        arguments: Mapping[str, int],
        model: AskedModel,
    ):
        given = ",".join(f"{key}={value}" for key, value in sorted(arguments.items()))
        super().__init__(name, f"compact {given} {model.name}")
        self._given = arguments
        self._model = model

    def arguments_for(self, tokens: int) -> dict[str, int]:
        """Return the arguments of the method for a transcript of so many tokens."""
        arguments = {}
        for key, value in COMPACT.arguments.items():
            if isinstance(value, int):
                arguments[key] = value
        arguments["threshold"] = max(1, min(arguments["threshold"], tokens // 2))
        arguments["turn"] = max(1, min(arguments["turn"], arguments["threshold"] // 4))
        arguments["kept"] = max(1, min(arguments["kept"], arguments["threshold"] // 2))
        return {**arguments, **self._given}

    def compact(self, messages: Sequence[TranscriptMessage], keep: int) -> Compacted:
        """Let the method read the messages, and return what it would answer from."""
        dollars: list[float | None] = []

        def send(steps: Sequence[Step]) -> list[StepReply]:
            if steps[0].is_official:
                # The prompt has nothing but the context, so this is what the method has kept.
                return [StepReply(str(steps[0].messages[0]["content"]))]
            return call_all(send_one, steps, _PARALLEL)

        def send_one(step: Step) -> StepReply:
            reply = self._model.ask(str(step.messages[0]["content"]), step.max_tokens)
            if reply.text is None:
                raise CompactionError(f"a request failed: {reply.failure}")
            dollars.append(reply.dollars)
            return StepReply(reply.text)

        text = render(messages)
        marks: list[tuple[int, Mapping[str, Any]]] = []
        start = 0
        for message in messages:
            marks.append((start, {}))
            start += len(message.render()) + 2
        question = Question(
            id="",
            text=text,
            span=(0, len(text)),
            question="",
            arguments=self.arguments_for(estimate_tokens(text)),
            max_tokens=1,
            send=send,
            marks=marks,
        )
        assert COMPACT.answer is not None
        kept = COMPACT.answer(question)
        made = [TranscriptMessage(USER, kept.strip())] if kept.strip() else []
        return Compacted(made, add_dollars(dollars), len(dollars))

    def estimate(self, tokens: int) -> tuple[int, int] | None:
        """Return the tokens of all summaries."""
        arguments = self.arguments_for(tokens)
        fresh = max(1, arguments["threshold"] - arguments["kept"])
        times = max(1, -(-tokens // fresh))
        return times * arguments["threshold"], times * arguments["kept"]

    def guess_size(self, tokens: int, keep: int) -> int:
        """Return the largest number: a summary, and the turns up to the threshold."""
        return min(tokens, self.arguments_for(tokens)["threshold"])


def split_label(spec: str) -> tuple[str, str]:
    """Return the name and the compactor in `NAME=COMPACTOR`. Without a name it is the compactor itself."""
    match = _LABEL.fullmatch(spec.strip())
    if match:
        return match[1], match[2].strip()
    return spec.strip(), spec.strip()


def read_method_arguments(text: str) -> dict[str, int]:
    """Return the arguments in `compact:threshold=16k,kept=1k`.

    Raises:
        InputError: an argument is unknown, or no number of tokens.
    """
    arguments = {}
    allowed = ("turn", "threshold", "kept")
    for pair in filter(None, text.split(",")):
        name, _, value = pair.partition("=")
        if name.strip() not in allowed:
            raise bad_argument("compaction", "--compactor compact", name, allowed)
        arguments[name.strip()] = parse_length(
            value.strip(), f"compaction: --compactor compact: {name.strip()}"
        )
    return arguments


def make_compactor(
    spec: str,
    model: Callable[[str], AskedModel],
    server: Callable[[str], Compactor],
    seconds: float,
) -> Compactor:
    """Return the compactor of an option.

    Args:
        spec: `compact`, `server`, `MODULE:FUNCTION` or a command, with or without `NAME=` before it.
        model: returns the model that writes summaries. Its argument says who needs it.
        server: returns the compactor of a server, with a name.
        seconds: how long a command may take.

    Raises:
        InputError: there is no such compactor, or it needs a model, and there is none.
    """
    name, text = split_label(spec)
    if not text:
        raise bad_argument(
            "compaction",
            "--compactor",
            spec,
            "compact, server, MODULE:FUNCTION or a command",
        )
    if name in BASELINES:
        raise bad_argument(
            "compaction", "--compactor", name, "another name: this one is a baseline"
        )
    kind, _, arguments = text.partition(":")
    if kind == "compact":
        return WithMethod(name, read_method_arguments(arguments), model("compact"))
    if text == "server":
        return server(name)
    if _FUNCTION.fullmatch(text):
        return FunctionCompactor(name, text)
    return CommandCompactor(name, text, seconds)


def make_baselines(names: Sequence[str]) -> list[Compactor]:
    """Return baselines by their names.

    Raises:
        InputError: a name is unknown.
    """
    kinds: dict[str, Callable[[], Compactor]] = {
        WHOLE: Whole,
        LAST: Last,
        NOTHING: Nothing,
    }
    made = []
    for name in names:
        if name not in kinds:
            raise bad_argument("compaction", "--baselines", name, kinds)
        made.append(kinds[name]())
    return made


def split_rounds(
    messages: Sequence[TranscriptMessage],
    rounds: int,
) -> list[Sequence[TranscriptMessage]]:
    """Return messages in parts of about equal numbers of tokens. There are fewer if there are fewer messages."""
    total = count_tokens(messages)
    parts: list[list[TranscriptMessage]] = [[]]
    read = 0
    for message in messages:
        if parts[-1] and read >= total * len(parts) / rounds:
            parts.append([])
        parts[-1].append(message)
        read += message.tokens
    return [*parts]


def compact_in_rounds(
    compactor: Compactor,
    messages: Sequence[TranscriptMessage],
    rounds: int,
    keep: int,
) -> Compacted:
    """Compact what is left after each part of a transcript, with the part, as agents do in a long session.

    Raises:
        CompactionError, InputError: see `Compactor.compact`.
        CancelledError: the command ends.
    """
    left: Sequence[TranscriptMessage] = ()
    dollars: list[float | None] = []
    requests = 0
    sizes = []
    start = time.monotonic()
    for part in split_rounds(messages, rounds):
        # A function or a program of the user can cost money, too.
        check_cancellation()
        made = compactor.compact([*left, *part], keep)
        left = made.messages
        dollars.append(made.dollars)
        requests += made.requests
        sizes.append(made.tokens)
    return Compacted(
        messages=left,
        dollars=add_dollars(dollars),
        requests=requests,
        seconds=time.monotonic() - start,
        sizes=sizes,
    )
