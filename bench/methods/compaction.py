"""Simulates comparisons of compactors whose losses are planted.

Does `compaction` order them rightly, and how often does it call equal ones different? Sessions of our own making, in the
formats of Claude Code, Codex and OpenCode, are written to files and read back. Three compactors lose what is known: a
function in Python drops the middle, a command drops the results of tools, and `compact` has a model that paraphrases some
sentences. Equal compactors each lose a share of the sentences of their own. The extractive reader answers the probes.

    python -m bench.methods.compaction                 # 100 seeds of 12 sessions
    python -m bench.methods.compaction --sessions 3    # too few for a statement about other sessions
"""

import argparse
import random
import tempfile
import time
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from helm_longctx.apps.compaction.asking import ProbeReply, open_replies
from helm_longctx.apps.compaction.compactors import (
    CommandCompactor,
    Compacted,
    Compactor,
    FunctionCompactor,
    WithMethod,
)
from helm_longctx.apps.compaction.probes import Probe
from helm_longctx.apps.compaction.results import CompactionResults, analyze
from helm_longctx.apps.compaction.samples import write_sample
from helm_longctx.apps.compaction.scoring import ExtractiveReader
from helm_longctx.apps.compaction.transcripts import Transcript, TranscriptMessage
from helm_longctx.apps.compaction.trial import Arm, TrialAsking, ask_all, compact_all

TOOL = """grep -v '^{"role":"tool"' {input}"""
PARAPHRASED = 0.08
"""Share of the lines that the model of `compact` writes in other words, so that their answers are lost."""

LOST = 0.3
"""Share of the lines that each of the equal compactors loses."""

DRAWN = 0.3
"""Share of the messages, in one piece, that each of the equal compactors of the second kind loses."""

ORDER = ("paraphrases", "drops tool results", "drops the middle")
"""The compactors, from the smallest planted loss to the largest."""

TURNS = 20
PER_KIND = 3
LINES = 4
"""Turns of a session, facts of each kind, and lines of each tool's result."""


def drop_middle(messages: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return the first 15 % and the last 40 % of the messages.

    The compactor finds it by name, as a user's function: Python's path starts in this file's folder.
    """
    count = len(messages)
    return messages[: count * 15 // 100] + messages[count * 60 // 100 :]


class Paraphraser:
    """A model that writes a summary as long as the text, with some lines in other words."""

    name = "paraphraser"

    def __init__(self, seed: int):
        self._seed = seed

    def ask(self, prompt: str, max_tokens: int) -> ProbeReply:
        """Return the text of a request for a summary."""
        text = prompt.partition("<text>\n")[2].rpartition("\n</text>")[0]
        lines = []
        for line in text.splitlines():
            drawn = random.Random(f"{self._seed} {line}").random()
            is_kept = line.startswith("[") or drawn >= PARAPHRASED
            lines.append(line if is_kept else "Something was said about it.")
        return ProbeReply("\n".join(lines))


class LosesLines(Compactor):
    """Loses lines at random, each on its own."""

    def __init__(self, name: str, seed: int):
        super().__init__(name)
        self._seed = seed

    def compact(self, messages: Sequence[TranscriptMessage], keep: int) -> Compacted:
        """Return the messages without the lost lines."""
        kept = []
        for message in messages:
            lines = []
            for line in message.text.splitlines():
                if random.Random(f"{self.name} {self._seed} {line}").random() >= LOST:
                    lines.append(line)
            kept.append(TranscriptMessage(message.role, "\n".join(lines)))
        return Compacted(kept)


class LosesPart(Compactor):
    """Loses one piece of each transcript, whose place is drawn: a summary that forgets a stretch of the work.

    The place follows from all that the transcript says. Beginnings alone are often alike, and equal draws in several
    transcripts would make the compactors differ truly.
    """

    def __init__(self, name: str, seed: int):
        super().__init__(name)
        self._seed = seed

    def compact(self, messages: Sequence[TranscriptMessage], keep: int) -> Compacted:
        """Return the messages without the piece."""
        said = "\n".join(message.text for message in messages)
        drawn = random.Random(f"{self.name} {self._seed} {said}").random()
        count = len(messages)
        start = round(drawn * (1 - DRAWN) * count)
        end = start + round(DRAWN * count)
        return Compacted([*messages[:start], *messages[end:]])


def make_transcripts(
    seed: int, sessions: int, folder: Path
) -> tuple[list[Transcript], list[Probe]]:
    """Write sessions in three formats in turn, and return them as they are read, with their probes."""
    seeds = [1000 * seed + number for number in range(sessions)]
    return write_sample(folder, seeds, turns=TURNS, per_kind=PER_KIND, log_lines=LINES)


def compare(
    transcripts: Sequence[Transcript],
    probes: Sequence[Probe],
    compactors: Sequence[Compactor],
    folder: Path,
) -> CompactionResults:
    """Compare compactors on transcripts."""
    keeps = {transcript.name: transcript.tokens // 4 for transcript in transcripts}
    arms = [Arm(compactor) for compactor in compactors]
    for compactor in compactors:
        # Nothing here is paid for.
        compactor.is_kept = False
    with open_replies(folder) as kept:
        compactions = compact_all(arms, transcripts, keeps, kept, 1)
        asking = TrialAsking(ExtractiveReader(), None, 30, 1)
        outcomes = ask_all(compactions, probes, asking)
    return analyze(compactions, outcomes, probes)


def make_planted(seed: int) -> list[Compactor]:
    """Return the function, the command and `compact`."""
    model: Any = Paraphraser(seed)
    return [
        WithMethod(ORDER[0], {}, model),
        CommandCompactor(ORDER[1], TOOL, 60),
        FunctionCompactor(ORDER[2], "bench.methods.compaction:drop_middle"),
    ]


def main() -> None:
    """Print how often compactors are ordered rightly, and how often equal ones are called different."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seeds", type=int, default=100)
    parser.add_argument("--sessions", type=int, default=12)
    options = parser.parse_args()
    counts: Counter[str] = Counter()
    recalls: dict[str, list[float]] = {name: [] for name in ORDER}
    start = time.monotonic()
    for seed in range(options.seeds):
        with tempfile.TemporaryDirectory() as name:
            folder = Path(name)
            made = make_transcripts(seed, options.sessions, folder)
            results = compare(*made, make_planted(seed), folder)
            means = {
                row.arm.compactor.name: row.interval.mean for row in results.recalls
            }
            for known in ORDER:
                recalls[known].append(means[known])
            counts["ordered"] += means[ORDER[0]] > means[ORDER[1]] > means[ORDER[2]]
            verdicts = [row.decision.verdict for row in results.differences]
            counts["all called different"] += verdicts == ["better"] * 3
            counts["called different the wrong way"] += "worse" in verdicts
            for kind in (LosesLines, LosesPart):
                pair = [kind("one", seed), kind("other", seed)]
                (difference,) = compare(*made, pair, folder).differences
                title = f"equal, {kind.__name__}: called different"
                counts[title] += difference.decision.is_different
    seconds = time.monotonic() - start
    print(f"{options.seeds} seeds of {options.sessions} sessions, {seconds:.0f} s")
    for name, values in recalls.items():
        if values:
            print(f"recall, {name}: {100 * sum(values) / len(values):.1f}")
    for name, number in counts.items():
        print(f"{name}: {number}")


if __name__ == "__main__":
    main()
