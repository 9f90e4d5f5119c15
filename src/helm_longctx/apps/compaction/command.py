"""`compaction`: find out what compaction loses on the user's own transcripts, and what it costs."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from contextlib import redirect_stdout
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, TextIO

import orjson
import typer

from helm_longctx.config.load import load_config
from helm_longctx.config.options import (
    FOLDERS,
    LIMITS,
    MODEL,
    read_options,
    split_names,
    takes_options,
)
from helm_longctx.config.shared import (
    JsonPath,
    Quiet,
    Verbose,
    check_folder,
    fill_registries,
    set_log_levels,
)
from helm_longctx.documents.document import Block, Cell, Section, Table
from helm_longctx.environment import EXTRAS, is_installed
from helm_longctx.errors import InputError, bad_argument
from helm_longctx.interruptions import describe_kept, stoppable
from helm_longctx.tasks.lengths import parse_length
from helm_longctx.tasks.registry import first_entry
from helm_longctx.writing import replace_file, write_output

if TYPE_CHECKING:
    from helm_longctx.apps.compaction.asking import AskedModel, Kept, Purse
    from helm_longctx.apps.compaction.compactors import Compactor
    from helm_longctx.apps.compaction.estimate import CompactionPlan
    from helm_longctx.apps.compaction.probes import MadeProbes, Probe
    from helm_longctx.apps.compaction.results import CompactionGate, CompactionResults
    from helm_longctx.apps.compaction.transcripts import Transcript
    from helm_longctx.apps.compaction.trial import Arm, TrialAsking
    from helm_longctx.config.schema import RunConfig
    from helm_longctx.redaction.personal import Replaced

_SHOWN_LOST = 3
_SHOWN_TEXT = 80
"""Lost probes of each compactor that the terminal shows, and most characters of their texts."""

_MOST_ROUNDS = 64

Files = Annotated[
    list[Path] | None,
    typer.Argument(
        metavar="[FILE]...",
        help="Transcripts: messages of OpenAI or Anthropic as JSON lines, sessions of"
        " Claude Code, Codex or OpenCode, or folders of them. [default: a sample of our"
        " own]",
        show_default=False,
    ),
]
Compactors = Annotated[
    list[str] | None,
    typer.Option(
        metavar="COMPACTOR",
        help="Compactor: compact, server, MODULE:FUNCTION or a command with {input} and"
        " {output}; with NAME= before it, if wanted. Several can be given.",
    ),
]


@takes_options(
    [*MODEL, "reasoning_effort", *LIMITS, *FOLDERS],
    model="Model that answers the probes. [default: a reader that copies the best"
    " sentence, without a key]",
    dry_run="Only print what would be sent, and its price.",
)
def compaction(
    files: Files = None,
    compactor: Compactors = None,
    compact_model: Annotated[
        str | None,
        typer.Option(
            help="Deployment that compacts: for compact and server. [default: the model]"
        ),
    ] = None,
    probe_model: Annotated[
        str | None,
        typer.Option(help="Deployment that makes the probes. [default: the model]"),
    ] = None,
    judge: Annotated[
        str | None,
        typer.Option(
            help="Deployment that judges answers that are not exact. [default: the model]"
        ),
    ] = None,
    probes: Annotated[
        Path | None,
        typer.Option(
            help="File of probes: read if it exists, and written otherwise. [default:"
            " in the folder]"
        ),
    ] = None,
    count: Annotated[
        int,
        typer.Option(
            min=1,
            max=1000,
            help="Probes to make for each transcript.",
        ),
    ] = 24,
    keep: Annotated[
        str | None,
        typer.Option(
            help="Tokens at the end that are not asked about, and that the baseline"
            " last keeps. [default: a quarter]"
        ),
    ] = None,
    rounds: Annotated[
        str,
        typer.Option(help="In how many parts a transcript comes, such as 1,2,4."),
    ] = "1",
    baselines: Annotated[
        str, typer.Option(help="Baselines: whole, last, nothing, or none.")
    ] = "whole,last,nothing",
    together: Annotated[
        int,
        typer.Option(
            min=1,
            max=100,
            help="Questions in one request.",
        ),
    ] = 10,
    redact: Annotated[
        bool,
        typer.Option(
            "--redact",
            help="Replace secrets and personal details before anything is sent, and"
            " show what was replaced.",
        ),
    ] = False,
    redact_words: Annotated[
        Path | None,
        typer.Option(help="File of further words to replace, one a line."),
    ] = None,
    max_loss: Annotated[
        float | None,
        typer.Option(
            min=0.1,
            max=99,
            help="Points of recall that a compactor may lose against --base. Sets the exit status.",
        ),
    ] = None,
    must_keep: Annotated[
        str | None,
        typer.Option(
            metavar="KINDS",
            help="Kinds of probes of which a compactor may lose none, such as constraints,decisions. Sets the exit"
            " status.",
        ),
    ] = None,
    base: Annotated[
        str, typer.Option(help="Compactor or baseline that --max-loss refers to.")
    ] = "whole",
    command_timeout: Annotated[
        float, typer.Option(min=1, help="Seconds that a command may take.")
    ] = 600,
    to: Annotated[
        Path | None,
        typer.Option(help="Folder to write to. [default: compactions/NAME]"),
    ] = None,
    json_path: JsonPath = None,
    *,
    quiet: Quiet = False,
    verbose: Verbose = False,
    **options: Any,
) -> None:
    """Find out what compaction loses on your own transcripts: recall of what vanishes, tokens kept, and dollars.

    Questions are made from the part that vanishes, checked, and asked about what each compactor leaves. With --max-loss
    the exit status is 0 if no compactor loses more than that, 1 if one does, and 3 if the probes cannot tell. The
    command can be interrupted and repeated: nothing is paid for twice. Without a model it runs without a key.
    """
    check_folder("json", json_path)
    wanted = _Wanted(
        files=files or [],
        compactors=compactor or [],
        compact_model=compact_model,
        probe_model=probe_model,
        judge=judge,
        probes=probes,
        count=count,
        keep=None if keep is None else parse_length(keep, "compaction: --keep"),
        rounds=_read_rounds(rounds),
        baselines=_read_baselines(baselines),
        together=together,
        redact=redact,
        words=_read_words(redact_words),
        max_loss=max_loss,
        must_keep=_read_kinds(must_keep),
        base=base,
        seconds=command_timeout,
        to=to,
        json_path=json_path,
    )
    with set_log_levels(quiet, verbose) as prints:
        raise typer.Exit(_run(wanted, options, prints))


@dataclass(frozen=True)
class _Wanted:
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


def _read_rounds(text: str) -> list[int]:
    rounds = []
    for word in text.split(","):
        number = word.strip()
        if not number.isascii() or not number.isdigit():
            number = "0"
        if not 1 <= int(number[:9]) <= _MOST_ROUNDS:
            allowed = f"numbers from 1 to {_MOST_ROUNDS}, such as 1,2,4"
            raise bad_argument("compaction", "--rounds", text, allowed)
        rounds.append(int(number))
    return sorted(set(rounds))


def _read_baselines(text: str) -> list[str]:
    names = []
    for name in text.split(","):
        if name.strip():
            names.append(name.strip())
    return [] if names == ["none"] else list(dict.fromkeys(names))


def _read_kinds(text: str | None) -> list[str]:
    """Return the kinds of probes that must be kept."""
    from helm_longctx.apps.compaction.probes import KINDS

    kinds = []
    for kind in split_names([text] if text else []):
        if kind not in KINDS:
            raise bad_argument("compaction", "--must-keep", kind, KINDS)
        kinds.append(kind)
    return kinds


def _read_words(path: Path | None) -> list[str]:
    if path is None:
        return []
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        reason = getattr(error, "strerror", None) or "the text is not UTF-8"
        raise InputError(f"compaction: --redact-words={path}: {reason}") from None
    words = []
    for line in text.splitlines():
        if line.strip():
            words.append(line.strip())
    if not words:
        raise InputError(f"compaction: --redact-words={path}: the file has no word")
    return words


def _run(wanted: _Wanted, options: Mapping[str, Any], prints: TextIO) -> int:
    """Make the comparison, and return its exit status."""
    from helm_longctx.config.settings import make_settings

    names = split_names(options["model"] or [])
    if options["model_url"]:
        names.append(options["model_url"])
    if len(names) > 1:
        raise bad_argument(
            "compaction",
            "--model",
            ", ".join(names),
            "one model, by --model or --model-url",
        )
    # No task is run: a plan has an entry, and finds the model and asks its server.
    entry = f"{first_entry()}:length=4k"
    config = load_config(
        None, read_options({**options, "suite": "compactions", "entry": [entry]})
    )
    folder = _choose_folder(wanted, config)
    sample, made_probes = _read_sample(wanted, folder)
    transcripts, replaced = _redact(sample, wanted)
    keeps = _find_keeps(transcripts, wanted.keep)
    with make_settings(config).use():
        with redirect_stdout(prints):  # HELM prints where it looks for credentials
            deployments = _find_deployments(wanted, config, bool(names))
        _check_needs(wanted, deployments, made_probes)
        folder.mkdir(parents=True, exist_ok=True)
        comparison = _Comparison(
            wanted, config, folder, deployments, transcripts, keeps, replaced
        )
        return comparison.run(made_probes, prints)


def _choose_folder(wanted: _Wanted, config: RunConfig) -> Path:
    if wanted.to:
        return wanted.to
    name = wanted.files[0].stem if wanted.files else "sample"
    return config.output_path / "compactions" / (name or "transcripts")


def _read_sample(
    wanted: _Wanted, folder: Path
) -> tuple[list[Transcript], list[Probe] | None]:
    """Return the transcripts, and the probes of our own sample."""
    from helm_longctx.apps.compaction.samples import write_sample
    from helm_longctx.apps.compaction.sessions import read_transcripts

    if wanted.files:
        return read_transcripts(wanted.files), None
    if wanted.redact or wanted.words:
        raise InputError(
            "compaction: --redact: the sample has no secrets; give transcripts of your own"
        )
    return write_sample(folder / "sample")


def _redact(
    transcripts: Sequence[Transcript], wanted: _Wanted
) -> tuple[list[Transcript], list[Replaced]]:
    from helm_longctx.apps.compaction.redacting import redact_transcripts

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
    wanted: _Wanted, config: RunConfig, has_model: bool
) -> _Deployments:
    from helm_longctx.config.plan import make_plan

    others = (wanted.probe_model, wanted.judge, wanted.compact_model)
    if not has_model and not any(others):
        return _Deployments(None, None, None, None)
    fill_registries(config.local_path)
    reader = None
    if has_model:
        reader = make_plan(config).specs[0].adapter_spec.model_deployment
    named = []
    for option, name in zip(
        ("--probe-model", "--judge", "--compact-model"), others, strict=True
    ):
        named.append(_find_deployment(option, name) if name else reader)
    writer, judge, compactor = named
    return _Deployments(reader, writer, judge, compactor)


def _find_deployment(option: str, name: str) -> str:
    """Return the deployment that a name of a model or a deployment stands for."""
    from helm.benchmark import model_deployment_registry as registry

    try:
        return registry.get_model_deployment(name).name
    except registry.ModelDeploymentNotFoundError:
        default = registry.get_default_model_deployment_for_model(name)
    if default is None:
        raise InputError(
            f"compaction: {option}={name!r}: HELM has no such deployment; see `helm-longctx models`"
        )
    return str(default)


def _check_needs(
    wanted: _Wanted, deployments: _Deployments, made_probes: Sequence[Probe] | None
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


class _Comparison:
    """A comparison in a folder."""

    def __init__(
        self,
        wanted: _Wanted,
        config: RunConfig,
        folder: Path,
        deployments: _Deployments,
        transcripts: Sequence[Transcript],
        keeps: Mapping[str, int],
        replaced: Sequence[Replaced],
    ):
        self._wanted = wanted
        self._config = config
        self._folder = folder
        self._deployments = deployments
        self._transcripts = transcripts
        self._keeps = keeps
        self._replaced = replaced

    def run(self, sample: Sequence[Probe] | None, prints: TextIO) -> int:
        """Print the plan, ask, and show the results. Returns the exit status."""
        from helm_longctx.apps.compaction.asking import Kept, Purse
        from helm_longctx.apps.compaction.estimate import (
            estimate_steps,
            price_table,
            total_dollars,
        )
        from helm_longctx.apps.compaction.sections import redaction_table
        from helm_longctx.documents.terminal import print_table
        from helm_longctx.locks import lock_run

        if self._replaced:
            print_table(redaction_table(self._replaced))
        with (
            lock_run(self._folder),
            Kept(self._folder) as kept,
            stoppable(lambda: describe_kept(self._folder)),
        ):
            purse = Purse(self._config.limits.max_cost)
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
            if self._config.dry_run:
                print("Nothing was sent.")
                return 0
            asking = self._make_asking(models, kept)
            made = None
            if known is None:
                made = self._make_probes(models, asking)
                known = made.probes
            results = self._ask(arms, known, asking, kept)
        return self._show(results, made, asking.reader.name)

    def _make_models(self, kept: Kept, purse: Purse) -> dict[str, AskedModel]:
        from helm_longctx.apps.compaction.asking import AskedModel

        deployments = self._deployments
        names = (
            deployments.reader,
            deployments.writer,
            deployments.judge,
            deployments.compactor,
        )
        models = {}
        for name in names:
            if name is not None and name not in models:
                models[name] = AskedModel(name, self._config.local_path, kept, purse)
        return models

    def _make_arms(self, models: Mapping[str, AskedModel], kept: Kept) -> list[Arm]:
        from helm_longctx.apps.compaction.compactors import (
            make_baselines,
            make_compactor,
        )
        from helm_longctx.apps.compaction.endpoints import make_server_compactor
        from helm_longctx.apps.compaction.trial import Arm

        def find_model(what: str) -> AskedModel:
            name = self._deployments.compactor
            if name is None:
                raise InputError(
                    f"compaction: --compactor {what} needs a model; give --model or --compact-model"
                )
            return models[name]

        def make_server(name: str) -> Compactor:
            return make_server_compactor(name, find_model("server"), kept)

        baselines = make_baselines(self._wanted.baselines)
        own = []
        for spec in self._wanted.compactors:
            own.append(
                make_compactor(spec, find_model, make_server, self._wanted.seconds)
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
        base = self._wanted.base
        names = [*self._wanted.baselines, *times]
        if self._wanted.max_loss is not None:
            if base not in names:
                raise bad_argument("compaction", "--base", base, names)
            if base in times and 1 not in self._wanted.rounds:
                raise bad_argument(
                    "compaction",
                    "--rounds",
                    "",
                    "1, too: --base is compared in one round",
                )
        arms = [Arm(compactor) for compactor in baselines]
        for compactor in own:
            arms += [Arm(compactor, number) for number in self._wanted.rounds]
        return arms

    @property
    def _probes_path(self) -> Path:
        return self._wanted.probes or self._folder / "probes.jsonl"

    def _load_probes(self, sample: Sequence[Probe] | None) -> list[Probe] | None:
        from helm_longctx.apps.compaction.probes import load_probes, save_probes

        if sample is not None and self._wanted.probes is None:
            save_probes(self._probes_path, sample)
            return list(sample)
        if self._probes_path.exists():
            return load_probes(self._probes_path, self._transcripts)
        return None

    def _make_plan(
        self,
        models: Mapping[str, AskedModel],
        arms: Sequence[Arm],
        known: Sequence[Probe] | None,
    ) -> CompactionPlan:
        from helm_longctx.apps.compaction.estimate import CompactionPlan

        deployments = self._deployments

        def find(name: str | None) -> AskedModel | None:
            return models[name] if name else None

        has_judged = known is None or not all(probe.is_exact for probe in known)
        return CompactionPlan(
            transcripts=self._transcripts,
            keeps=self._keeps,
            arms=arms,
            probes=known,
            count=self._wanted.count,
            writer=find(deployments.writer),
            reader=find(deployments.reader),
            judge=find(deployments.judge) if has_judged else None,
            compactor_model=find(deployments.compactor),
            together=self._wanted.together,
        )

    def _print_transcripts(self) -> None:
        for transcript in self._transcripts:
            print(
                f"{transcript.name}: {transcript.format}, {len(transcript.messages):,}"
                f" messages, {transcript.tokens:,} tokens; the last"
                f" {self._keeps[transcript.name]:,} are not asked about"
            )
        if self._deployments.reader is None:
            print(
                "Answers are by the extractive reader, which copies the best sentence:"
                " it needs no model and no key."
            )

    def _make_asking(self, models: Mapping[str, AskedModel], kept: Kept) -> TrialAsking:
        from helm_longctx.apps.compaction.scoring import (
            ExtractiveReader,
            JudgeOfProbes,
            ModelReader,
        )
        from helm_longctx.apps.compaction.trial import TrialAsking

        reader = self._deployments.reader
        judge = self._deployments.judge
        return TrialAsking(
            reader=ModelReader(models[reader]) if reader else ExtractiveReader(),
            judge=JudgeOfProbes(models[judge], kept) if judge else None,
            together=self._wanted.together,
            parallelism=self._config.parallelism,
        )

    def _make_probes(
        self, models: Mapping[str, AskedModel], asking: TrialAsking
    ) -> MadeProbes:
        """Make probes, check them, print what became of them, and keep them in the file."""
        from helm_longctx.apps.compaction.probes import (
            MadeProbes,
            save_probes,
            write_probes,
        )
        from helm_longctx.apps.compaction.sections import describe_making
        from helm_longctx.apps.compaction.trial import check_probes, number_probes

        assert self._deployments.writer is not None
        writer = models[self._deployments.writer]
        all_made = MadeProbes()
        for transcript in self._transcripts:
            end = transcript.find_tail(self._keeps[transcript.name])
            made = write_probes(
                transcript, writer, self._wanted.count, end, asking.parallelism
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
        kept: Kept,
    ) -> CompactionResults:
        from helm_longctx.apps.compaction.results import analyze
        from helm_longctx.apps.compaction.trial import ask_all, compact_all

        names = {probe.transcript for probe in probes}
        asked = []
        for transcript in self._transcripts:
            if transcript.name in names:
                asked.append(transcript)
        compactions = compact_all(arms, asked, self._keeps, kept, asking.parallelism)
        outcomes = ask_all(compactions, probes, asking)
        return analyze(compactions, outcomes, probes)

    def _show(
        self,
        results: CompactionResults,
        made: MadeProbes | None,
        reader: str,
    ) -> int:
        """Print the results, and write the page and the data. Returns the exit status."""
        from helm_longctx.apps.compaction.results import find_kept_kinds
        from helm_longctx.apps.compaction.sections import (
            About,
            make_sections,
            results_json,
            write_page,
        )
        from helm_longctx.results.statistics.noninferiority import combine_verdicts

        name = self._folder.name
        about = About(
            name, reader, self._transcripts, self._keeps, made, self._replaced
        )
        gate = self._decide(results)
        kept = None
        if self._wanted.must_keep:
            kept = find_kept_kinds(results, self._wanted.must_keep)
        sections = make_sections(results, about, gate, kept)
        _print_sections(sections)
        content = orjson.dumps(
            results_json(results, about, gate, kept), option=orjson.OPT_INDENT_2
        )
        # A lock leaves no folder in which nothing was kept.
        self._folder.mkdir(parents=True, exist_ok=True)
        path = self._folder / "compaction.json"
        replace_file(path, content)
        if self._wanted.json_path:
            write_output(self._wanted.json_path, content)
        if all(map(is_installed, (*EXTRAS["report"], "jinja2"))):
            print(f"The page: {write_page(sections, about, self._folder)}")
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
        from helm_longctx.apps.compaction.results import decide_losses

        if self._wanted.max_loss is None:
            return None
        margin = self._wanted.max_loss / 100
        return decide_losses(results, self._wanted.base, margin)


def _print_sections(sections: Sequence[Section]) -> None:
    """Print the sections, of lost probes only the first ones of each compactor, and no list of all probes."""
    from helm_longctx.documents.terminal import print_blocks

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
