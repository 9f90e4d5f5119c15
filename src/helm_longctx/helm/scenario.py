"""The scenario of all benchmarks. It makes instances of the examples of a run entry's tasks, in the official order."""

import logging
from collections.abc import Iterator
from dataclasses import asdict
from pathlib import Path
from typing import Any

from helm.benchmark.scenarios.scenario import (
    CORRECT_TAG,
    TEST_SPLIT,
    Input,
    Instance,
    Output,
    Reference,
    Scenario,
    ScenarioMetadata,
)

from helm_longctx.data.fetch import ensure
from helm_longctx.data.root import DataRoot
from helm_longctx.errors import InputError
from helm_longctx.helm.truncation import settings_with_tokenizer
from helm_longctx.tasks.benchmark import Benchmark
from helm_longctx.tasks.entry import Entry
from helm_longctx.tasks.entry_data import fetch_command
from helm_longctx.tasks.loading import load_examples
from helm_longctx.tasks.methods.registry import METHODS
from helm_longctx.tasks.registry import benchmark_of
from helm_longctx.tasks.sample import Sample
from helm_longctx.tasks.stored_entry import check_arguments
from helm_longctx.tasks.task import MAIN_METRIC, PLAIN, Example, Settings, Task

_log = logging.getLogger(__name__)


class LongContextScenario(Scenario):
    """HELM's scenario for a run entry. Its tasks are sub-splits. Wrong arguments raise an `InputError`.

    Args:
        revision: the official revision that the prompts and metrics follow; it must be the installed package's.
        comparability: the benchmark's comparability number when the run spec was made; it must be the installed one.
        files: digest of the user's own files when the run spec was made, which the runner compares with a complete
            run's.
    """

    def __init__(
        self,
        entry: str,
        revision: str,
        comparability: int | None = None,
        files: str | None = None,
        **arguments: Any,
    ):
        self.benchmark = benchmark_of(entry)
        installed = {
            "revision": self.benchmark.revision,
            "comparability": self.benchmark.comparability,
        }
        for name, given in (("revision", revision), ("comparability", comparability)):
            # A run spec that a user wrote need not name the number.
            if given not in (None, installed[name]):
                raise InputError(
                    f"{entry}: {name}={given!r} is invalid; the installed package has"
                    f" {installed[name]!r}"
                )
        self.entry = check_arguments(entry, arguments)
        self.name = self.benchmark.name
        self.description = f"{self.benchmark.title}: {self.benchmark.description}"
        self.tags = ["long_context"]
        super().__init__()
        self.definition_path = self.benchmark.url

    def get_instances(self, output_path: str) -> list[Instance]:
        """Return all instances, as HELM's own runner asks for them, or raise an `InputError` if only ours can run."""
        if self.entry.settings.retry_cut:
            raise _needs_our_runner(
                self.entry,
                "reads the answers of another run, which HELM's own runner cannot do",
            )
        self.entry.check_machine()  # our runner does this earlier
        instances = list(self.iter_instances(output_path))
        samples = (Sample.from_json(instance.extra_data) for instance in instances)
        if any(sample.follow_up or sample.method for sample in samples):
            raise _needs_our_runner(
                self.entry,
                "needs two requests for each question or more, which HELM's own runner cannot send",
            )
        return instances

    def iter_instances(self, output_path: str) -> Iterator[Instance]:
        """Fetch missing data into the cache beside HELM's folder of the scenario, and yield instances one at a time."""
        root = scenario_root(output_path)
        sources = [*self.entry.sources, *self.entry.judge_sources(root)]
        ensure(sources, root, fetch_command([self.entry], root))
        settings = settings_with_tokenizer(self.entry, root)
        for task in self.entry.tasks:
            if task.unscored and not self.entry.metric:
                _log.warning("%s has no score: %s", task.name, task.unscored)
            for example in load_examples(task, settings, root):
                yield to_instance(
                    self.benchmark, task, settings, example, self.entry.max_tokens
                )

    def get_metadata(self) -> ScenarioMetadata:
        """Return the title, description and main metric that the leaderboard shows."""
        return ScenarioMetadata(
            name=self.entry.groups[0],
            main_metric=MAIN_METRIC,
            main_split="test",
            display_name=self.entry.title,
            description=self.description,
        )


def scenario_root(output_path: str) -> DataRoot:
    """Return the data root for the folder that HELM gives a scenario, `<output>/scenarios/<scenario>`."""
    return DataRoot.find(Path(output_path).parent.parent)


def _needs_our_runner(entry: Entry, reason: str) -> InputError:
    return InputError(
        f"{entry.description} {reason}; give --runner-class-name"
        " helm_longctx.runner.LongContextRunner"
    )


def to_instance(
    benchmark: Benchmark,
    task: Task,
    settings: Settings,
    example: Example,
    run_max_tokens: int,
) -> Instance:
    """Return an example's instance: its prompt as a chat, and a `Sample` with the run's output budget."""
    limits = (
        benchmark.axis is not None
        and benchmark.axis.limits_prompt
        and settings.method == PLAIN
    )
    prompt = task.prompt(example, task.variant(settings).system)
    second = example.follow_up
    is_program = (
        settings.method != PLAIN and METHODS[settings.method].answer is not None
    )
    sample = Sample(
        source=example.source,
        max_tokens=task.budget(settings, example),
        run_max_tokens=run_max_tokens,
        chat=task.chat,
        cut=task.cut,
        # With another axis the length counts words or output tokens, and these limit no prompt. A method has budgets of its
        # own, with which the length would cut the context of the same question more.
        length=settings.length if limits else None,
        context_span=prompt.context,
        reserved=example.reserved,
        separator=prompt.separator,
        answer_prefix=prompt.answer_prefix,
        prefix_scored=task.prefix_scored,
        stop=stop_sequences(task, settings),
        thinking_tokens=settings.thinking_tokens,
        question=example.question,
        depth=example.depth,
        input_tokens=example.input_tokens,
        counter=example.counter,
        record={**example.record, **task.record_fields(settings)},
        group=example.group,
        follow_up={name: value for name, value in asdict(second).items() if value != ""}
        if second
        else None,
        method={"name": settings.method, "arguments": dict(settings.method_arguments)}
        if is_program
        else None,
        read=example.read,
        marks=[list(mark) for mark in example.marks] if is_program else (),
        answer_tokens=example.answer_tokens,
        errata=example.errata or None,
        request=settings.request,
    )
    return Instance(
        # HELM's pages expect a single user turn as a text.
        input=(
            Input(text=prompt.user_turn)
            if prompt.has_one_turn
            else Input(messages=list(map(dict, prompt.messages)))
        ),
        # HELM's pages show references with this tag as the correct answers.
        references=[
            Reference(Output(text=text), tags=[CORRECT_TAG])
            for text in example.references
        ],
        split=TEST_SPLIT,
        sub_split=task.name,
        id=example.id,
        extra_data=sample.to_json(),
    )


def stop_sequences(task: Task, settings: Settings) -> tuple[str, ...]:
    """Return the stop sequences of completions. A model that thinks gets none (HELMET eval.py:74)."""
    if settings.thinking_tokens:
        return ()
    return task.variant(settings).stop
