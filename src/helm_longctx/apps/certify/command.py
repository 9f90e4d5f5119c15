"""`certify`: find out how long a context an endpoint really uses; and before that, what it can cost and find."""

from __future__ import annotations

import json
import math
import secrets
from collections.abc import Mapping
from contextlib import redirect_stdout
from dataclasses import asdict, dataclass, replace
from datetime import date
from importlib import resources
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
import yaml

from helm_longctx.apps.certify.search import (
    ABOVE_FLOOR,
    KIND_SHARE,
    NO_TEXT,
    SEEDS,
    Design,
    PairedAnswer,
    plan_tests,
)
from helm_longctx.config.options import FOLDERS, LIMITS, MODEL, takes_options
from helm_longctx.config.shared import Quiet, Verbose, set_log_levels
from helm_longctx.config.single_model import (
    find_deployment,
    load_single_model,
    plan_single_model,
)
from helm_longctx.documents.document import text_table
from helm_longctx.documents.terminal import print_table
from helm_longctx.errors import InputError, bad_argument
from helm_longctx.models.apis.prices import Prices, find_prices
from helm_longctx.runs.design import keep_design, read_design
from helm_longctx.tasks.answer import Usage
from helm_longctx.tasks.lengths import length_label, parse_length
from helm_longctx.writing import replace_file

if TYPE_CHECKING:
    from helm_longctx.config.plan import Plan

_POWER = 0.9
"""Share of certificates that decide with `questions_for` questions."""

_MORE = 1.13
"""How many times as many questions as a test of a fixed number with known expected scores needs. Measured by
`bench/decisions/certify.py`: the tests look after each answer, and the scores at the shortest length are estimated."""


@dataclass(frozen=True)
class _PlannedLength:
    """The questions of all kinds at one length.

    Args:
        fewest: number of questions if all answers are right, so that only the shortest length and the claim are asked.
        most: largest number of questions.
        dollars: price of `fewest` and of `most`, if the price is known.
    """

    length: int
    fewest: int
    most: int
    dollars: tuple[float, float] | None


def plan_lengths(
    design: Design,
    budgets: Mapping[str, int],
    prices: Prices | None,
) -> list[_PlannedLength]:
    """Return the questions without a text, at the shortest length, and at the claim.

    All longer prompts together have at most the tokens of the largest number of questions at the claim.

    Args:
        budgets: the output budget of each kind, in tokens.
    """
    kinds = len(budgets)
    first = design.first
    above, _ = plan_tests(
        [
            [
                PairedAnswer(
                    expected=1.0,
                    score=1.0,
                    question=0,
                )
            ]
            * first
            * design.texts
        ]
        * kinds,
        design.loss,
        design.most,
        design.error,
    )
    # A kind of which more questions are drawn has more of them at the shortest length, too.
    counts = {
        0: (NO_TEXT * kinds, NO_TEXT * kinds),
        design.shortest: (
            first * kinds * design.texts,
            (first * (kinds - 1) + design.most) * design.texts,
        ),
        design.claim: (
            above.count_until_sure(design.loss, design.most),
            design.most,
        ),
    }
    budget = math.ceil(sum(budgets.values()) / kinds)
    plans = []
    for length, (fewest, most) in counts.items():
        usage = Usage(input_tokens=max(length, 1), output_tokens=budget)
        of_one = prices.dollars(usage) or 0.0 if prices else None
        if of_one is None:
            dollars = None
        else:
            dollars = (fewest * of_one, most * of_one)
        plans.append(
            _PlannedLength(
                length=length,
                fewest=fewest,
                most=most,
                dollars=dollars,
            )
        )
    return plans


def questions_for(score: float, loss: float, error: float) -> int | None:
    """Return about how many questions at the claim decide about a loss in `_POWER` of certificates.

    It is the larger one of the numbers for a model without a loss and for one with this loss, by the normal
    approximation. Answers are right or wrong, and answers at different lengths are independent.

    Args:
        score: the score at the shortest length.
        loss: the loss that is allowed, 0 to 1.
        error: probability of a wrong decision.

    Returns:
        The number, or None if kinds with this score cannot be measured.
    """
    from scipy.special import ndtri

    def count(true: float, other: float, of_error: float) -> float:
        one = -ndtri(of_error) * math.sqrt(max(other * (1 - other), 0.01))
        two = ndtri(_POWER) * math.sqrt(max(true * (1 - true), 0.01))
        return float((one + two) / loss) ** 2

    if score <= loss + ABOVE_FLOOR:
        return None
    lost = score - loss
    without_loss = count(score, lost, error)
    with_loss = count(lost, score, error * (1 - KIND_SHARE))
    return math.ceil(_MORE * max(without_loss, with_loss))


_KINDS = Path(str(resources.files(__package__) / "certify.yaml"))
"""The run entries of the kinds, by name: of those that are always asked, and of those that are asked by choice."""

_RECORD = "certificate.json"
_PAGE = "index.html"


_Loss = Annotated[
    float,
    typer.Option(
        min=5,
        max=50,
        help="Points of the score; an effective length loses fewer.",
    ),
]
_Error = Annotated[
    float,
    typer.Option(
        min=0.001,
        max=0.5,
        help="Probability that the claim is judged wrongly.",
    ),
]
_Most = Annotated[
    int,
    typer.Option(
        "--max-eval-instances",
        "-m",
        min=2,
        max=SEEDS - 1,
        help="Maximum questions at the claim; their tokens limit all prompts between it"
        " and the shortest length.",
    ),
]
_Thinking = Annotated[
    int, typer.Option(min=0, help="Additional tokens of each answer for reasoning.")
]


@takes_options(
    [*MODEL, "reasoning_effort", *LIMITS, *FOLDERS],
    dry_run="Only print the plan, its price and what it can find.",
)
def certify(
    claim: Annotated[str, typer.Option(help="Length to check, in tokens.")] = "1m",
    shortest: Annotated[
        str, typer.Option(help="Length whose score the others are compared with.")
    ] = "4k",
    loss: _Loss = 20,
    error: _Error = 0.05,
    most: _Most = 57,
    each_kind: Annotated[
        bool,
        typer.Option(
            "--each-kind",
            help="Ask more at an effective claim, until each kind is decided.",
        ),
    ] = False,
    tool_calls: Annotated[
        bool,
        typer.Option(
            "--tool-calls", help="Ask for calls of tools, too, as a sixth kind."
        ),
    ] = False,
    seed: Annotated[
        int | None,
        typer.Option(min=0, help="First seed of the texts. [default: drawn]"),
    ] = None,
    thinking_tokens: _Thinking = 0,
    to: Annotated[
        Path | None,
        typer.Option(help="Folder to write to. [default: certificates/MODEL-CLAIM]"),
    ] = None,
    *,
    quiet: Quiet = False,
    verbose: Verbose = False,
    **options: Any,
) -> None:
    """Find out how long a context an endpoint really uses, with five kinds of questions about texts drawn anew.

    The same questions are asked at the shortest length and at the claim, until it is decided whether the model loses.
    The command can be interrupted and repeated: no answer is paid for twice.
    """
    kinds = _read_kinds(tool_calls)
    longest = parse_length(claim, "certify: --claim")
    least = parse_length(shortest, "certify: --shortest")
    if longest < 2 * least:
        raise bad_argument(
            "certify",
            "--claim",
            claim,
            f"at least twice the shortest length, {shortest}",
        )
    design = Design(
        claim=longest,
        shortest=least,
        kinds=tuple(kinds),
        loss=loss / 100,
        error=error,
        most=most,
        each_kind=each_kind,
    )
    if thinking_tokens:
        suffix = f",thinking_tokens={thinking_tokens}"
    else:
        suffix = ""
    entries = {}
    for kind, entry in kinds.items():
        entries[kind] = entry + suffix
    with set_log_levels(quiet, verbose) as prints:
        _certify(options, entries, design, to, seed, prints)


def _read_kinds(with_tool_calls: bool) -> dict[str, str]:
    """Return the run entries of the kinds that are asked, by name."""
    kinds = yaml.safe_load(_KINDS.read_text(encoding="utf-8"))
    if with_tool_calls:
        return {**kinds["always"], **kinds["by_choice"]}
    return dict(kinds["always"])


def _certify(
    options: Mapping[str, Any],
    entries: Mapping[str, str],
    design: Design,
    to: Path | None,
    seed: int | None,
    prints: Any,
) -> None:
    from helm_longctx.apps.certify.effective_context import make_effective_context
    from helm_longctx.apps.certify.sections import (
        describe_kinds,
        describe_totals,
        describe_verdict,
        write_certificate,
    )
    from helm_longctx.config.settings import make_settings
    from helm_longctx.results.effective_context import FILE, write_effective_context

    # A certificate has one run entry for each kind.
    texts = []
    for entry in entries.values():
        texts.append(f"{entry},length={design.shortest}")
    config = load_single_model("certify", options, "certificates", texts)
    with make_settings(config).use():
        plan = plan_single_model(config, prints)
        deployment = find_deployment(plan)
        if config.dry_run:
            _print_plan(design, deployment, plan)
            return
        name = f"{deployment.replace('/', '_')}-{length_label(design.claim)}"
        folder = to or config.output_path / "certificates" / name
        design = _keep_design(folder, deployment, design, seed)
        with redirect_stdout(prints):
            record = _ask(plan, entries, design, deployment, folder)
        replace_file(folder / _RECORD, json.dumps(record, indent=1).encode(), b"\n")
        write_certificate(record, folder / _PAGE)
        effective = make_effective_context(record, deployment, date.today())
        write_effective_context(effective, folder / FILE)
        columns, rows = describe_kinds(record)
        print_table(text_table(describe_verdict(record), columns, rows))
        print(*describe_totals(record), sep="\n")
        print(f"The page: {folder / _PAGE}")
        print(f"All data: {folder / _RECORD}")
        print(f"For other programs: {folder / FILE}")


def _keep_design(
    folder: Path,
    deployment: str,
    design: Design,
    seed: int | None,
) -> Design:
    """Return the design with its seed, and keep it in the folder, so that the same command asks the same questions."""
    kept = read_design(folder, "certify")
    if kept and kept["model"] != deployment:
        raise InputError(
            f"certify: --to={folder}: this folder has the certificate of"
            f" {kept['model']}; give another one"
        )
    if seed is None and kept:
        seed = kept["seed"]
    if seed is None:
        # Seeds count up, so certificates have seeds that are far apart.
        seed = secrets.randbelow(10**6) * 1000
    wanted = replace(design, seed=seed)
    content = {"model": deployment, **asdict(wanted)}
    keep_design(folder, content, "certify", "a certificate")
    return wanted


def _ask(
    plan: Plan,
    entries: Mapping[str, str],
    design: Design,
    deployment: str,
    folder: Path,
) -> dict[str, Any]:
    """Ask until everything is decided, and return the certificate."""
    from helm_longctx.apps.certify.asking import CertificateRunner
    from helm_longctx.apps.certify.procedure import run
    from helm_longctx.runner.runner import runner_arguments

    config = plan.config
    arguments = runner_arguments(
        config.output_path, config.suite, config.local_path, config.parallelism
    )
    runner = CertificateRunner(
        entries, deployment, folder, design.shortest, **arguments
    )
    with runner.journal() as journal:
        outcome = run(design, lambda blocks: runner.ask(journal, blocks))
    return {**outcome.record(), **runner.describe()}


def _print_plan(design: Design, deployment: str, plan: Plan) -> None:
    """Print what is asked at most, and before how many questions and tokens of the claim which loss is decided."""
    prices = find_prices(deployment)
    limits = []
    for spec in plan.specs:
        limits.append(spec.adapter_spec.max_tokens)
    plans = plan_lengths(design, dict(zip(design.kinds, limits, strict=True)), prices)
    rows = []
    for planned in plans:
        dollars = ["unknown", "unknown"]
        if planned.dollars:
            dollars = []
            for value in planned.dollars:
                dollars.append(f"${value:,.2f}")
        if planned.length:
            length = length_label(planned.length)
        else:
            length = "no text"
        rows.append([length, str(planned.fewest), str(planned.most), *dollars])
    columns = (
        "length",
        "questions if all is right",
        "questions at most",
        "price if all is right",
        "price at most",
    )
    print_table(
        text_table(f"The largest plan for {deployment}", columns, rows, right=columns)
    )
    losses = sorted({0.1, 0.15, 0.3, design.loss})
    rows = []
    for score in (0.5, 0.8, 0.9, 0.98):
        cells = []
        for loss in losses:
            count = questions_for(score, loss, design.error)
            cells.append(
                f"{count}, {count * design.claim / 1e6:,.1f}M" if count else "–"
            )
        rows.append([f"{100 * score:.0f}", *cells])
    title = f"Questions at the claim, and their tokens, that decide in {_POWER:.0%} of certificates"
    heads = [
        f"score at {length_label(design.shortest)}",
        *(f"--loss {100 * loss:.0f}" for loss in losses),
    ]
    print_table(text_table(title, heads, rows, right=heads))
    needed = questions_for(0.5, design.loss, design.error)
    if needed and design.most < needed:
        print(
            f"-m {design.most} is too few for a model with a score of 50: give -m {needed}."
        )
    prices_of_plans = []
    for planned in plans:
        if planned.dollars:
            prices_of_plans.append(planned.dollars)
    if len(prices_of_plans) < len(plans):
        print("The price is not known; give --prices. Nothing was sent.")
        return
    low = sum(least for least, _ in prices_of_plans)
    high = sum(most for _, most in prices_of_plans)
    print(
        f"${low:,.2f} if all answers are right, ${high:,.2f} at most; --max-cost stops"
        " earlier. Nothing was sent."
    )
