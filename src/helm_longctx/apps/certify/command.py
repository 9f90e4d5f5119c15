"""`certify`: find out how long a context an endpoint really uses."""

from __future__ import annotations

import json
import secrets
from collections.abc import Mapping
from contextlib import redirect_stdout
from dataclasses import asdict
from importlib import resources
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
import yaml

from helm_longctx.apps.certify.search import SEEDS, Design
from helm_longctx.config.load import load_config
from helm_longctx.config.logs import set_log_levels
from helm_longctx.config.options import read_options, split_names, takes_options
from helm_longctx.config.shared import Quiet, Verbose, fill_registries
from helm_longctx.documents.document import text_table
from helm_longctx.documents.terminal import print_table
from helm_longctx.errors import InputError, bad_argument
from helm_longctx.tasks.lengths import length_label, parse_length

if TYPE_CHECKING:
    from helm_longctx.config.plan import Plan

KINDS = Path(str(resources.files(__package__) / "certify.yaml"))
"""The run entries of the kinds, by name."""

DESIGN, RECORD, PAGE = "design.json", "certificate.json", "index.html"


Loss = Annotated[float, typer.Option(min=5, max=50, help="Points of the score; an effective length loses fewer.")]
Error = Annotated[float, typer.Option(min=0.001, max=0.5, help="Probability that the claim is judged wrongly.")]
Most = Annotated[
    int,
    typer.Option(
        "--max-eval-instances",
        "-m",
        min=2,
        max=SEEDS - 1,
        help="Maximum questions at the claim; their tokens limit all prompts between it and the shortest length.",
    ),
]
Thinking = Annotated[int, typer.Option(min=0, help="Additional tokens of each answer for reasoning.")]


@takes_options(
    *("model", "model_url", "model_name", "model_type", "api_key_env", "context", "tokenizer", "reasoning_effort"),
    *("max_cost", "prices", "request_timeout", "max_retries", "parallelism", "output_path", "local_path", "dry_run"),
    dry_run="Only print the plan, its price and what it can find.",
)
def certify(
    claim: Annotated[str, typer.Option(help="Length to check, in tokens.")] = "1m",
    shortest: Annotated[str, typer.Option(help="Length whose score the others are compared with.")] = "4k",
    loss: Loss = 20,
    error: Error = 0.05,
    most: Most = 57,
    each_kind: Annotated[
        bool, typer.Option("--each-kind", help="Ask more at an effective claim, until each kind is decided.")
    ] = False,
    seed: Annotated[int | None, typer.Option(min=0, help="First seed of the texts. [default: drawn]")] = None,
    thinking_tokens: Thinking = 0,
    to: Annotated[Path | None, typer.Option(help="Folder to write to. [default: certificates/MODEL-CLAIM]")] = None,
    *,
    quiet: Quiet = False,
    verbose: Verbose = False,
    **options: Any,
) -> None:
    """Find out how long a context an endpoint really uses, with five kinds of questions about texts drawn anew.

    The same questions are asked at the shortest length and at the claim, until it is decided whether the model loses.
    The command can be interrupted and repeated: no answer is paid for twice.
    """
    kinds: dict[str, str] = yaml.safe_load(KINDS.read_text(encoding="utf-8"))
    lengths = _read_lengths(claim, shortest)
    design = Design(*lengths, tuple(kinds), loss / 100, error, most, each_kind=each_kind)
    suffix = f",thinking_tokens={thinking_tokens}" if thinking_tokens else ""
    entries = {kind: entry + suffix for kind, entry in kinds.items()}
    with set_log_levels(quiet, verbose) as prints:
        _certify(options, entries, design, to, seed, prints)


def _read_lengths(claim: str, shortest: str) -> tuple[int, int]:
    """Return the claim and the shortest length."""
    longest, least = (
        parse_length(value, f"certify: --{name}") for name, value in (("claim", claim), ("shortest", shortest))
    )
    if longest < 2 * least:
        raise bad_argument("certify", "--claim", claim, f"at least twice the shortest length, {shortest}")
    return longest, least


def _certify(
    options: Mapping[str, Any],
    entries: Mapping[str, str],
    design: Design,
    to: Path | None,
    seed: int | None,
    prints: Any,
) -> None:
    from helm_longctx.config.plan import make_plan, use_settings

    models = [*split_names(options["model"] or []), *filter(None, [options["model_url"]])]
    if len(models) > 1:
        raise bad_argument("certify", "--model", ", ".join(models), "one model, by --model or --model-url")
    # A certificate has one run entry for each kind.
    texts = [f"{entry},length={design.shortest}" for entry in entries.values()]
    config = load_config(None, read_options({**options, "suite": "certificates", "entry": texts}))
    with use_settings(config):
        with redirect_stdout(prints):  # HELM prints where it looks for credentials
            fill_registries(config.local_path)
            plan = make_plan(config)
        deployment = plan.specs[0].adapter_spec.model_deployment
        if config.dry_run:
            _print_plan(design, deployment, plan)
            return
        folder = to or config.output_path / "certificates" / _folder_name(deployment, design)
        design = _keep_design(folder, deployment, design, seed)
        with redirect_stdout(prints):
            record = _ask(plan, entries, design, deployment, folder)
        _write(folder, record)
        _print_record(record, folder)


def _folder_name(deployment: str, design: Design) -> str:
    return f"{deployment.replace('/', '_')}-{length_label(design.claim)}"


def _keep_design(folder: Path, deployment: str, design: Design, seed: int | None) -> Design:
    """Return the design with its seed, and keep it in the folder, so that the same command asks the same questions."""
    path = folder / DESIGN
    if path.is_file():
        before = json.loads(path.read_text(encoding="utf-8"))
        # Folders of earlier versions do not name the model.
        if (model := before.pop("model", deployment)) != deployment:
            raise InputError(f"certify: --to={folder}: this folder has the certificate of {model}; give another one")
        wanted = Design(**{**asdict(design), "seed": before["seed"] if seed is None else seed})
        if json.loads(json.dumps(asdict(wanted))) != before:
            raise InputError(
                f"certify: --to={folder}: this folder has a certificate with other options; give another one"
            )
        return wanted
    # Seeds count up, so certificates have seeds that are far apart.
    wanted = Design(**{**asdict(design), "seed": secrets.randbelow(10**6) * 1000 if seed is None else seed})
    folder.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps({"model": deployment, **asdict(wanted)}, indent=2) + "\n", encoding="utf-8")
    return wanted


def _ask(plan: Plan, entries: Mapping[str, str], design: Design, deployment: str, folder: Path) -> dict[str, Any]:
    """Ask until everything is decided, and return the certificate."""
    from helm_longctx.apps.certify.asking import CertificateRunner
    from helm_longctx.apps.certify.endpoint import describe_repetition
    from helm_longctx.apps.certify.procedure import run
    from helm_longctx.runner.runner import runner_arguments

    config = plan.config
    arguments = runner_arguments(config.output_path, config.suite, config.local_path, config.parallelism)
    runner = CertificateRunner(entries, deployment, folder, design.shortest, **arguments)
    with runner.journal() as journal:
        outcome = run(design, lambda blocks: runner.ask(journal, blocks))
    return {**outcome.record(), **describe_repetition(runner, folder)}


def _write(folder: Path, record: Mapping[str, Any]) -> None:
    from helm_longctx.apps.certify.sections import write_certificate

    (folder / RECORD).write_text(json.dumps(record, indent=1) + "\n", encoding="utf-8")
    write_certificate(record, folder / PAGE)


def _print_record(record: Mapping[str, Any], folder: Path) -> None:
    from helm_longctx.apps.certify.sections import describe_kinds, describe_totals, describe_verdict

    columns, rows = describe_kinds(record)
    print_table(text_table(describe_verdict(record), columns, rows))
    print(*describe_totals(record), sep="\n")
    print(f"The page: {folder / PAGE}")
    print(f"All data: {folder / RECORD}")


def _print_plan(design: Design, deployment: str, plan: Plan) -> None:
    """Print what is asked at most, and how many questions decide about which loss."""
    from helm_longctx.apps.certify.plan import plan_lengths
    from helm_longctx.models.apis.prices import find_prices

    prices = find_prices(deployment)
    budgets = dict(zip(design.kinds, (spec.adapter_spec.max_tokens for spec in plan.specs), strict=True))
    plans, rows = plan_lengths(design, budgets, prices), []
    for each in plans:
        dollars = [f"${value:,.2f}" for value in each.dollars] if each.dollars else ["unknown"] * 2
        length = length_label(each.length) if each.length else "no text"
        rows.append([length, str(each.fewest), str(each.most), *dollars])
    columns = ("length", "questions if all is right", "questions at most", "price if all is right", "price at most")
    print_table(text_table(f"The largest plan for {deployment}", columns, rows, right=columns))
    _print_losses(design)
    if all(each.dollars for each in plans):
        low, high = (sum(each.dollars[end] for each in plans if each.dollars) for end in (0, 1))
        print(
            f"${low:,.2f} if all answers are right, ${high:,.2f} at most; --max-cost stops earlier. Nothing was sent."
        )
    else:
        print("The price is not known; give --prices. Nothing was sent.")


def _print_losses(design: Design) -> None:
    """Print before how many questions and tokens of the claim which loss is decided, by the score."""
    from helm_longctx.apps.certify.plan import POWER, questions_for

    losses = sorted({0.1, 0.15, 0.3, design.loss})
    rows = []
    for score in (0.5, 0.8, 0.9, 0.98):
        counts = [questions_for(score, loss, design.error) for loss in losses]
        cells = [f"{count}, {count * design.claim / 1e6:,.1f}M" if count else "–" for count in counts]
        rows.append([f"{100 * score:.0f}", *cells])
    title = f"Questions at the claim, and their tokens, that decide in {POWER:.0%} of certificates"
    columns = (f"score at {length_label(design.shortest)}", *(f"--loss {100 * loss:.0f}" for loss in losses))
    print_table(text_table(title, columns, rows, right=columns))
    needed = questions_for(0.5, design.loss, design.error)
    if needed and design.most < needed:
        print(f"-m {design.most} is too few for a model with a score of 50: give -m {needed}.")
