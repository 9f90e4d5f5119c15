"""Makes a comparison of compactors: reads transcripts, prints the plan, asks, decides, and writes the results."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from contextlib import redirect_stdout
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TextIO

import orjson

from helm_longctx.apps.compaction.asking import AskedModel, Purse, open_replies
from helm_longctx.apps.compaction.compactors import (
    Compactor,
    make_baselines,
    make_compactor,
)
from helm_longctx.apps.compaction.endpoints import make_server_compactor
from helm_longctx.apps.compaction.estimate import (
    CompactionPlan,
    estimate_steps,
    price_table,
    total_dollars,
)
from helm_longctx.apps.compaction.probes import (
    MadeProbes,
    Probe,
    load_probes,
    save_probes,
    write_probes,
)
from helm_longctx.apps.compaction.redacting import redact_transcripts
from helm_longctx.apps.compaction.results import (
    CompactionGate,
    CompactionResults,
    analyze,
    decide_losses,
    find_kept_kinds,
)
from helm_longctx.apps.compaction.samples import write_sample
from helm_longctx.apps.compaction.scoring import (
    ExtractiveReader,
    JudgeOfProbes,
    ModelReader,
)
from helm_longctx.apps.compaction.sections import (
    About,
    describe_making,
    make_sections,
    redaction_table,
    results_json,
    write_page,
)
from helm_longctx.apps.compaction.sessions import read_transcripts
from helm_longctx.apps.compaction.transcripts import Transcript
from helm_longctx.apps.compaction.trial import (
    Arm,
    TrialAsking,
    ask_all,
    check_probes,
    compact_all,
    number_probes,
)
from helm_longctx.config.schema import RunConfig
from helm_longctx.config.settings import make_settings
from helm_longctx.config.shared import check_folder, fill_registries
from helm_longctx.config.single_model import find_deployment, plan_single_model
from helm_longctx.documents.document import Block, Cell, Section, Table
from helm_longctx.documents.terminal import print_blocks, print_table
from helm_longctx.environment import EXTRAS, is_installed
from helm_longctx.errors import InputError, bad_argument
from helm_longctx.helm.command_line import find_deployment_of
from helm_longctx.interruptions import describe_kept, stoppable
from helm_longctx.locks import lock_run
from helm_longctx.redaction.personal import Replaced
from helm_longctx.results.statistics.noninferiority import combine_verdicts
from helm_longctx.runs.journal import KeptValues
from helm_longctx.writing import replace_file, write_output

_SHOWN_LOST = 3
_SHOWN_TEXT = 80
"""Lost probes of each compactor that the terminal shows, and most characters of their texts."""


@dataclass(frozen=True)
class Wanted:
    """The options of the command, as they are used."""

    files: Sequence[Path]
    compactors: Sequence[str]
    compact_model: str | None
    probe_model: str | None
    judge: str | None
    probes: Path | None
    count: int
    keep: int | None
    rounds: Sequence[int]
    baselines: Sequence[str]
    together: int
    redact: bool
    words: Sequence[str]
    max_loss: float | None
    must_keep: Sequence[str]
    base: str
    seconds: float
    to: Path | None
    json_path: Path | None


def compare(wanted: Wanted, config: RunConfig, prints: TextIO) -> int:
    """Make the comparison, and return its exit status."""
    folder = _choose_folder(wanted, config)
    sample, made_probes = _read_sample(wanted, folder)
    transcripts, replaced = _redact(sample, wanted)
    keeps = _find_keeps(transcripts, wanted.keep)
    with make_settings(config).use():
        deployments = _find_deployments(wanted, config, prints)
        _check_needs(wanted, deployments, made_probes)
        folder.mkdir(parents=True, exist_ok=True)
        comparison = _Comparison(
            wanted=wanted,
            config=config,
            folder=folder,
            deployments=deployments,
            transcripts=transcripts,
            keeps=keeps,
            replaced=replaced,
        )
        return comparison.run(made_probes, prints)


def _choose_folder(wanted: Wanted, config: RunConfig) -> Path:
    if wanted.to:
        return wanted.to
    name = wanted.files[0].stem if wanted.files else "sample"
    return config.output_path / "compactions" / (name or "transcripts")


def _read_sample(
    wanted: Wanted,
    folder: Path,
) -> tuple[list[Transcript], list[Probe] | None]:
    """Return the transcripts, and the probes of our own sample."""
    if wanted.files:
        return read_transcripts(wanted.files), None
    if wanted.redact or wanted.words:
        raise InputError(
            "compaction: --redact: the sample has no secrets; give transcripts of your own"
        )
    return write_sample(folder / "sample")


def _redact(
    transcripts: Sequence[Transcript],
    wanted: Wanted,
) -> tuple[list[Transcript], list[Replaced]]:
    if not (wanted.redact or wanted.words):
        return list(transcripts), []
    return redact_transcripts(transcripts, wanted.words)


def _find_keeps(transcripts: Sequence[Transcript], keep: int | None) -> dict[str, int]:
    """Return the tokens at the end of each transcript that are not asked about."""
    keeps = {}
    for transcript in transcripts:
        own = transcript.tokens // 4 if keep is None else keep
        if not transcript.find_tail(own):
            raise InputError(
                f"compaction: {transcript.name} has {transcript.tokens:,} tokens, and"
                f" --keep={own:,} leaves none to ask about; give fewer, or leave this"
                " transcript out"
            )
        keeps[transcript.name] = own
    return keeps


@dataclass(frozen=True)
class _Deployments:
    """The deployments by what they do. None stands for no model."""

    reader: str | None
    writer: str | None
    judge: str | None
    compactor: str | None


def _find_deployments(
    wanted: Wanted,
    config: RunConfig,
    prints: TextIO,
) -> _Deployments:
    reader = None
    if config.models:
        reader = find_deployment(plan_single_model(config, prints))
    elif wanted.probe_model or wanted.judge or wanted.compact_model:
        with redirect_stdout(prints):  # HELM prints where it looks for credentials
            fill_registries(config.local_path)
    return _Deployments(
        reader=reader,
        writer=_find_deployment("--probe-model", wanted.probe_model, reader),
        judge=_find_deployment("--judge", wanted.judge, reader),
        compactor=_find_deployment("--compact-model", wanted.compact_model, reader),
    )


def _find_deployment(
    option: str,
    name: str | None,
    reader: str | None,
) -> str | None:
    """Return the deployment that an option names. Without a name, the reader's deployment does the work."""
    if not name:
        return reader
    deployment = find_deployment_of(name)
    if deployment is None:
        raise InputError(
            f"compaction: {option}={name!r}: HELM has no such deployment; see `helm-longctx models`"
        )
    return deployment


def _check_needs(
    wanted: Wanted,
    deployments: _Deployments,
    made_probes: Sequence[Probe] | None,
) -> None:
    """Raise an `InputError` if something is missing, before anything is sent."""
    is_made = made_probes is not None or (wanted.probes and wanted.probes.exists())
    if not is_made and deployments.writer is None:
        raise InputError(
            "compaction: probes are made by a model; give --model or --probe-model, or"
            " --probes with a file that exists"
        )
    if wanted.probes:
        check_folder("probes", wanted.probes)
    if not wanted.compactors and not wanted.baselines:
        raise InputError("compaction: there is nothing to compare; give --compactor")
    for option, is_given in (
        ("--max-loss", wanted.max_loss is not None),
        ("--must-keep", bool(wanted.must_keep)),
    ):
        if is_given and not wanted.compactors:
            raise InputError(
                f"compaction: {option} needs a compactor; give --compactor"
            )


@dataclass(frozen=True)
class _Comparison:
    """A comparison in a folder.

    Attributes:
        keeps: the tokens at the end of each transcript that are not asked about, by its name.
        replaced: what was redacted in the transcripts.
    """

    wanted: Wanted
    config: RunConfig
    folder: Path
    deployments: _Deployments
    transcripts: Sequence[Transcript]
    keeps: Mapping[str, int]
    replaced: Sequence[Replaced]

    def run(self, sample: Sequence[Probe] | None, prints: TextIO) -> int:
        """Print the plan, ask, and show the results. Returns the exit status."""
        if self.replaced:
            print_table(redaction_table(self.replaced))
        with (
            lock_run(self.folder),
            open_replies(self.folder) as kept,
            stoppable(lambda: describe_kept(self.folder)),
        ):
            purse = Purse(self.config.limits.max_cost)
            with redirect_stdout(prints):
                models = self._make_models(kept, purse)
                arms = self._make_arms(models, kept)
            known = self._load_probes(sample)
            plan = self._make_plan(models, arms, known)
            steps = estimate_steps(plan)
            self._print_transcripts()
            if steps:
                print_table(price_table(steps))
            if any(step.requests is None for step in steps):
                print("What the programs of compactors cost is not known.")
            dollars = total_dollars(steps)
            if dollars is None:
                print("A price is not known; give --prices.")
            elif dollars:
                print(f"Together at most ${dollars:,.2f}; --max-cost stops earlier.")
            if self.config.dry_run:
                print("Nothing was sent.")
                return 0
            asking = self._make_asking(models, kept)
            made = None
            if known is None:
                made = self._make_probes(models, asking)
                known = made.probes
            results = self._ask(arms, known, asking, kept)
        return self._show(results, made, asking.reader.name)

    def _make_models(self, kept: KeptValues, purse: Purse) -> dict[str, AskedModel]:
        deployments = self.deployments
        names = (
            deployments.reader,
            deployments.writer,
            deployments.judge,
            deployments.compactor,
        )
        models = {}
        for name in names:
            if name is not None and name not in models:
                models[name] = AskedModel(name, self.config.local_path, kept, purse)
        return models

    def _make_arms(
        self,
        models: Mapping[str, AskedModel],
        kept: KeptValues,
    ) -> list[Arm]:
        def find_model(what: str) -> AskedModel:
            name = self.deployments.compactor
            if name is None:
                raise InputError(
                    f"compaction: --compactor {what} needs a model; give --model or --compact-model"
                )
            return models[name]

        def make_server(name: str) -> Compactor:
            return make_server_compactor(name, find_model("server"), kept)

        baselines = make_baselines(self.wanted.baselines)
        own = []
        for spec in self.wanted.compactors:
            own.append(
                make_compactor(spec, find_model, make_server, self.wanted.seconds)
            )
        times = Counter(compactor.name for compactor in own)
        for name, number in times.items():
            if number > 1:
                raise bad_argument(
                    "compaction",
                    "--compactor",
                    name,
                    "each name once, with NAME= before it",
                )
        base = self.wanted.base
        names = [*self.wanted.baselines, *times]
        if self.wanted.max_loss is not None:
            if base not in names:
                raise bad_argument("compaction", "--base", base, names)
            if base in times and 1 not in self.wanted.rounds:
                raise bad_argument(
                    "compaction",
                    "--rounds",
                    "",
                    "1, too: --base is compared in one round",
                )
        arms = [Arm(compactor) for compactor in baselines]
        for compactor in own:
            arms += [Arm(compactor, number) for number in self.wanted.rounds]
        return arms

    @property
    def _probes_path(self) -> Path:
        return self.wanted.probes or self.folder / "probes.jsonl"

    def _load_probes(self, sample: Sequence[Probe] | None) -> list[Probe] | None:
        if sample is not None and self.wanted.probes is None:
            save_probes(self._probes_path, sample)
            return list(sample)
        if self._probes_path.exists():
            return load_probes(self._probes_path, self.transcripts)
        return None

    def _make_plan(
        self,
        models: Mapping[str, AskedModel],
        arms: Sequence[Arm],
        known: Sequence[Probe] | None,
    ) -> CompactionPlan:
        deployments = self.deployments

        def find(name: str | None) -> AskedModel | None:
            return models[name] if name else None

        has_judged = known is None or not all(probe.is_exact for probe in known)
        return CompactionPlan(
            transcripts=self.transcripts,
            keeps=self.keeps,
            arms=arms,
            probes=known,
            count=self.wanted.count,
            writer=find(deployments.writer),
            reader=find(deployments.reader),
            judge=find(deployments.judge) if has_judged else None,
            compactor_model=find(deployments.compactor),
            together=self.wanted.together,
        )

    def _print_transcripts(self) -> None:
        for transcript in self.transcripts:
            print(
                f"{transcript.name}: {transcript.format}, {len(transcript.messages):,}"
                f" messages, {transcript.tokens:,} tokens; the last"
                f" {self.keeps[transcript.name]:,} are not asked about"
            )
        if self.deployments.reader is None:
            print(
                "Answers are by the extractive reader, which copies the best sentence:"
                " it needs no model and no key."
            )

    def _make_asking(
        self,
        models: Mapping[str, AskedModel],
        kept: KeptValues,
    ) -> TrialAsking:
        reader = self.deployments.reader
        judge = self.deployments.judge
        return TrialAsking(
            reader=ModelReader(models[reader]) if reader else ExtractiveReader(),
            judge=JudgeOfProbes(models[judge], kept) if judge else None,
            together=self.wanted.together,
            parallelism=self.config.parallelism,
        )

    def _make_probes(
        self,
        models: Mapping[str, AskedModel],
        asking: TrialAsking,
    ) -> MadeProbes:
        """Make probes, check them, print what became of them, and keep them in the file."""
        assert self.deployments.writer is not None
        writer = models[self.deployments.writer]
        all_made = MadeProbes()
        for transcript in self.transcripts:
            end = transcript.find_tail(self.keeps[transcript.name])
            made = write_probes(
                transcript, writer, self.wanted.count, end, asking.parallelism
            )
            checked = check_probes(made, transcript, asking)
            all_made.probes += checked.probes
            all_made.rejected += checked.rejected
            all_made.failures += checked.failures
        all_made.probes = number_probes(all_made.probes)
        for line in describe_making(all_made):
            print(line)
        if not all_made.probes:
            raise InputError(
                "compaction: no probe is left; the model may be too weak for this"
                " transcript: give another --probe-model or --model"
            )
        if all_made.failures:
            print("The file of probes is not written before all are checked.")
        else:
            save_probes(self._probes_path, all_made.probes)
            print(f"The probes: {self._probes_path}")
        return all_made

    def _ask(
        self,
        arms: Sequence[Arm],
        probes: Sequence[Probe],
        asking: TrialAsking,
        kept: KeptValues,
    ) -> CompactionResults:
        names = {probe.transcript for probe in probes}
        asked = []
        for transcript in self.transcripts:
            if transcript.name in names:
                asked.append(transcript)
        compactions = compact_all(arms, asked, self.keeps, kept, asking.parallelism)
        outcomes = ask_all(compactions, probes, asking)
        return analyze(compactions, outcomes, probes)

    def _show(
        self,
        results: CompactionResults,
        made: MadeProbes | None,
        reader: str,
    ) -> int:
        """Print the results, and write the page and the data. Returns the exit status."""
        about = About(
            name=self.folder.name,
            reader=reader,
            transcripts=self.transcripts,
            keeps=self.keeps,
            made=made,
            replaced=self.replaced,
        )
        gate = self._decide(results)
        kept = None
        if self.wanted.must_keep:
            kept = find_kept_kinds(results, self.wanted.must_keep)
        sections = make_sections(results, about, gate, kept)
        _print_sections(sections)
        content = orjson.dumps(
            results_json(results, about, gate, kept), option=orjson.OPT_INDENT_2
        )
        # A lock leaves no folder in which nothing was kept.
        self.folder.mkdir(parents=True, exist_ok=True)
        path = self.folder / "compaction.json"
        replace_file(path, content)
        if self.wanted.json_path:
            write_output(self.wanted.json_path, content)
        if all(map(is_installed, (*EXTRAS["report"], "jinja2"))):
            print(f"The page: {write_page(sections, about, self.folder)}")
        else:
            print("For a page: pip install 'helm-longctx[report]'")
        print(f"All data: {path}")
        if not any(recall.interval.n for recall in results.recalls):
            return 1
        verdicts = []
        for decided in (gate, kept):
            if decided:
                verdicts.append(decided.verdict)
        return int(combine_verdicts(verdicts)) if verdicts else 0

    def _decide(self, results: CompactionResults) -> CompactionGate | None:
        if self.wanted.max_loss is None:
            return None
        margin = self.wanted.max_loss / 100
        return decide_losses(results, self.wanted.base, margin)


def _print_sections(sections: Sequence[Section]) -> None:
    """Print the sections, of lost probes only the first ones of each compactor, and no list of all probes."""
    for section in sections:
        if section.name in ("probes", "redacted"):
            continue
        if section.about:
            print(section.about)
        if section.name == "lost":
            print_blocks([_cut_table(block) for block in section.blocks])
        else:
            print_blocks(section.blocks)


def _cut_table(block: Block) -> Block:
    """Return a table of lost probes with the first rows of each compactor and the beginnings of texts."""
    if not isinstance(block, Table):
        return block
    rows = []
    times: Counter[str] = Counter()
    for row in block.rows:
        times[row[0].text] += 1
        if times[row[0].text] <= _SHOWN_LOST:
            rows.append([_cut_cell(cell) for cell in row])
    left = len(block.rows) - len(rows)
    about = f"{left:,} more are on the page and in the data." if left else ""
    return replace(block, rows=rows, about=about)


def _cut_cell(cell: Cell) -> Cell:
    if len(cell.text) <= _SHOWN_TEXT:
        return cell
    return replace(cell, text=f"{cell.text[:_SHOWN_TEXT]}…")
