"""Compares compactors: compacts each transcript, asks the probes about what is left, and keeps all that is paid for."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

from helm_longctx.apps.compaction.asking import ProbeReply, name_of
from helm_longctx.apps.compaction.compactors import (
    Compacted,
    CompactionError,
    Compactor,
    compact_in_rounds,
    split_rounds,
)
from helm_longctx.apps.compaction.endpoints import OpenAIServer, is_opaque
from helm_longctx.apps.compaction.probes import MadeProbes, Probe, part_around
from helm_longctx.apps.compaction.scoring import (
    Given,
    JudgeOfProbes,
    Reader,
    ScoreState,
    answer_budget,
    question_prompt,
    score_reply,
    split_reply,
)
from helm_longctx.apps.compaction.transcripts import (
    Transcript,
    TranscriptMessage,
    from_openai,
    name_tools,
    render,
    to_openai,
)
from helm_longctx.failures import Failure
from helm_longctx.models.apis.calls import call_with_bar
from helm_longctx.runs.journal import KeptValues


@dataclass(frozen=True)
class Arm:
    """A compactor with a number of rounds: in how many parts a transcript comes, after each of which it is compacted."""

    compactor: Compactor
    rounds: int = 1

    @property
    def name(self) -> str:
        """Its name in results."""
        if self.rounds == 1:
            return self.compactor.name
        return f"{self.compactor.name}, {self.rounds} rounds"


@dataclass(frozen=True)
class Compaction:
    """What is left of a transcript.

    Args:
        failure: why there is no result. Empty if there is one.
    """

    transcript: Transcript
    arm: Arm
    result: Compacted
    failure: str = ""


@dataclass(frozen=True)
class Outcome:
    """What became of a probe in an arm."""

    probe: Probe
    arm: Arm
    given: Given


@dataclass(frozen=True)
class TrialAsking:
    """How probes are asked.

    Args:
        together: how many questions are in one request.
        parallelism: how many requests are in flight.
    """

    reader: Reader
    judge: JudgeOfProbes | None
    together: int
    parallelism: int


class _Batch(NamedTuple):
    """Probes that are asked together about one context."""

    messages: Sequence[TranscriptMessage]
    probes: Sequence[Probe]
    compactor: Compactor | None = None


def compact_all(
    arms: Sequence[Arm],
    transcripts: Sequence[Transcript],
    keeps: Mapping[str, int],
    kept: KeptValues,
    parallelism: int,
) -> list[Compaction]:
    """Compact each transcript in each arm. Results of earlier commands are not made again.

    Args:
        keeps: the tokens at the end that are not asked about, by the name of the transcript.
    """
    jobs = []
    for transcript in transcripts:
        for arm in arms:
            jobs.append((transcript, arm))

    def compact(job: tuple[Transcript, Arm]) -> Compaction:
        transcript, arm = job
        return _compact_one(transcript, arm, keeps[transcript.name], kept)

    return call_with_bar(compact, jobs, parallelism, "Compactions")


def _compact_one(
    transcript: Transcript,
    arm: Arm,
    keep: int,
    kept: KeptValues,
) -> Compaction:
    compactor = arm.compactor
    name = name_of(
        "compaction", compactor.identity, str(arm.rounds), str(keep), transcript.digest
    )
    known = kept.get(name) if compactor.is_kept else None
    if known is not None:
        return Compaction(transcript, arm, _load_compacted(known))
    try:
        result = compact_in_rounds(compactor, transcript.messages, arm.rounds, keep)
    except CompactionError as error:
        return Compaction(transcript, arm, Compacted(()), str(error))
    if compactor.is_kept:
        kept.add(name, _dump_compacted(result))
    return Compaction(transcript, arm, result)


def _dump_compacted(result: Compacted) -> dict[str, Any]:
    messages = []
    for message in result.messages:
        if message.item is None:
            messages += to_openai([message])
        else:
            messages.append({"item": dict(message.item), "size": message.size})
    return {
        "messages": messages,
        "dollars": result.dollars,
        "requests": result.requests,
        "seconds": result.seconds,
        "sizes": list(result.sizes),
    }


def _load_compacted(content: Mapping[str, Any]) -> Compacted:
    messages: list[TranscriptMessage] = []
    for raw in content["messages"]:
        if "item" in raw:
            own = TranscriptMessage("assistant", "", item=raw["item"], size=raw["size"])
            messages.append(own)
        else:
            messages += from_openai([raw])
    return Compacted(
        messages=name_tools(messages),
        dollars=content["dollars"],
        requests=content["requests"],
        seconds=content["seconds"],
        sizes=content["sizes"],
    )


def ask_all(
    compactions: Sequence[Compaction],
    probes: Sequence[Probe],
    asking: TrialAsking,
) -> list[Outcome]:
    """Ask the probes of each transcript about what each arm has left of it."""
    outcomes: list[Outcome] = []
    batches: list[_Batch] = []
    arms: list[Arm] = []
    for compaction in compactions:
        own = [
            probe for probe in probes if probe.transcript == compaction.transcript.name
        ]
        if compaction.failure:
            failure = f"no compaction: {compaction.failure}"
            given = Given(None, ScoreState.FAILED, None, failure)
            outcomes += [Outcome(probe, compaction.arm, given) for probe in own]
            continue
        for group in _group(own, asking.together):
            batches.append(
                _Batch(compaction.result.messages, group, compaction.arm.compactor)
            )
            arms.append(compaction.arm)
    answers = _answer_batches(batches, asking, "Answers")
    for arm, batch, given_answers in zip(arms, batches, answers, strict=True):
        for probe, given in zip(batch.probes, given_answers, strict=True):
            outcomes.append(Outcome(probe, arm, given))
    return outcomes


def _group(probes: Sequence[Probe], size: int) -> list[Sequence[Probe]]:
    return [probes[start : start + size] for start in range(0, len(probes), size)]


def _answer_batches(
    batches: Sequence[_Batch],
    asking: TrialAsking,
    title: str,
) -> list[list[Given]]:
    def answer(batch: _Batch) -> list[Given]:
        replies = _ask_batch(batch, asking)
        given = []
        for probe, reply in zip(batch.probes, replies, strict=True):
            given.append(score_reply(probe, reply, asking.judge))
        return given

    return call_with_bar(answer, batches, asking.parallelism, title)


def _ask_batch(batch: _Batch, asking: TrialAsking) -> list[ProbeReply]:
    questions = [probe.question for probe in batch.probes]
    if not is_opaque(batch.messages):
        # Made here, so that only the contexts of requests in flight are in memory.
        return asking.reader.answer(render(batch.messages), questions)
    assert isinstance(batch.compactor, OpenAIServer)
    prompt = question_prompt(questions, has_context=True)
    budget = answer_budget(questions)
    return split_reply(
        batch.compactor.answer(batch.messages, prompt, budget), questions
    )


def check_probes(
    made: MadeProbes,
    transcript: Transcript,
    asking: TrialAsking,
) -> MadeProbes:
    """Return the probes that are answered rightly with the whole transcript, and not without it.

    A reader that cannot read the whole transcript gets the part around the answer.
    """
    checked = MadeProbes(
        rejected=Counter(made.rejected), failures=Counter(made.failures)
    )
    groups = _group(made.probes, asking.together)
    without = _answer_batches(
        [_Batch((), group) for group in groups], asking, "Without the transcript"
    )
    left: list[Probe] = []
    for group, answers in zip(groups, without, strict=True):
        for probe, given in zip(group, answers, strict=True):
            if given.score:
                checked.rejected["it is answered without the transcript"] += 1
            elif given.score is None and given.text is None:
                checked.failures[given.failure] += 1
            else:
                left.append(probe)
    groups = _group(left, asking.together)
    batches = [_Batch(transcript.messages, group) for group in groups]
    answers_of_groups = _answer_batches(batches, asking, "With the transcript")
    for group, answers in zip(groups, answers_of_groups, strict=True):
        for probe, given in zip(group, answers, strict=True):
            if given.failure == Failure.TOO_LONG.value:
                given = _answer_from_part(transcript, probe, asking)
            if given.score is None:
                checked.failures[given.failure] += 1
            elif given.score:
                checked.probes.append(probe)
            else:
                checked.rejected["it is not answered with the transcript"] += 1
    return checked


def _answer_from_part(
    transcript: Transcript,
    probe: Probe,
    asking: TrialAsking,
) -> Given:
    batch = _Batch(part_around(transcript, probe), [probe])
    (reply,) = _ask_batch(batch, asking)
    return score_reply(probe, reply, asking.judge)


def count_compactions(transcript: Transcript, probe: Probe, rounds: int) -> int:
    """Return how many compactions the message of a probe goes through if the transcript comes in rounds."""
    parts = split_rounds(transcript.messages, rounds)
    read = 0
    for number, part in enumerate(parts):
        read += len(part)
        if probe.message < read:
            return len(parts) - number
    raise IndexError(f"{probe.id}: there is no message {probe.message}")


def number_probes(probes: Sequence[Probe]) -> list[Probe]:
    """Return probes with consecutive numbers in their transcripts."""
    times: Counter[str] = Counter()
    numbered = []
    for probe in probes:
        times[probe.transcript] += 1
        own_id = f"{probe.transcript}#{times[probe.transcript]}"
        numbered.append(replace(probe, id=own_id))
    return numbered
