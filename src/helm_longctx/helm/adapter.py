"""The adapter of all tasks. It makes one request of each instance, as a chat or a completion."""

import os
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from typing import TypeVar

from helm.benchmark.adaptation.adapter_spec import AdapterSpec
from helm.benchmark.adaptation.adapters.adapter import Adapter
from helm.benchmark.adaptation.request_state import RequestState
from helm.benchmark.scenarios.scenario import EVAL_SPLITS, Instance
from helm.benchmark.window_services.tokenizer_service import TokenizerService
from helm.common.request import Request

from helm_longctx.errors import InputError
from helm_longctx.helm.style import (
    check_drawing,
    deployment_style,
    sends_messages,
    takes_both_styles,
)
from helm_longctx.helm.truncation import Truncator
from helm_longctx.models.sampling import with_sampling
from helm_longctx.models.scoring import with_answers
from helm_longctx.tasks.cutting.cutters import NoRoomError
from helm_longctx.tasks.prompt import FittedPrompt, Message, Style, message_text
from helm_longctx.tasks.request_settings import LIKELIHOOD, LONGPPL, MetricArgument
from helm_longctx.tasks.sample import Sample
from helm_longctx.tasks.token_estimate import estimate_fewest_tokens

_Item = TypeVar("_Item")
_Result = TypeVar("_Result")


class TooLongError(InputError):
    """Prompts of some tasks have an excess of tokens, and `truncation=error` forbids cutting them."""

    def __init__(self, excess: Sequence[tuple[str, int]]):
        self.excess = list(excess)
        by_task: dict[str, list[int]] = {}
        for task, tokens in excess:
            by_task.setdefault(task, []).append(tokens)
        parts = (
            f"{len(tokens)} instances of {task} are up to {max(tokens)} tokens too long"
            for task, tokens in by_task.items()
        )
        super().__init__(
            f"truncation=error: {', '.join(parts)}; nothing was sent. Give"
            " truncation=auto to cut prompts, or a shorter length"
        )


class LongContextAdapter(Adapter):
    """The adapter for the instances of all benchmarks of this package.

    It logs no prompts, and copies a prompt only if a completion or a cut requires it.
    """

    def __init__(self, adapter_spec: AdapterSpec, tokenizer_service: TokenizerService):
        super().__init__(adapter_spec, tokenizer_service)
        self.deployment_style = deployment_style(adapter_spec.model_deployment)
        self.takes_both_styles = takes_both_styles(adapter_spec.model_deployment)
        self.sends_messages = sends_messages(adapter_spec.model_deployment)
        self.truncator = Truncator.for_deployment(adapter_spec.model_deployment)

    def adapt(self, instances: list[Instance], parallelism: int) -> list[RequestState]:
        """Make the request of each instance for each trial, in order.

        Threads tokenize several prompts at once, because tokenizers release the GIL. Without a tokenizer they would only
        wait for each other. Raises a `TooLongError` if the run
        entry has `truncation=error`, and an `InputError` if a prompt cannot be cut so that it fits, or cannot be sent.
        """
        evaluated = []
        for instance in instances:
            if instance.split in EVAL_SPLITS:
                evaluated.append(instance)
        if not evaluated:
            return []
        # All instances of a run have the same.
        settings = Sample.from_json(evaluated[0].extra_data).request
        check_drawing(settings.sampling, self.adapter_spec)
        workers = 1
        if self.truncator.window is not None:
            # Tokenizing uses a whole core, so more threads than cores would only need more memory.
            workers = min(parallelism, os.cpu_count() or 1)
        states = _each(self._adapt_named, evaluated, workers)
        if settings.truncation == "error" and any(
            state.prompt_truncated for state in states
        ):
            excess = _each(self._excess, states, workers)
            raise TooLongError(
                [
                    (str(state.instance.sub_split), e)
                    for state, e in zip(states, excess, strict=True)
                    if e
                ]
            )
        # The prompts are cut only once, because all trials share their texts. Each repeat has its own `random`, so
        # HELM's cache stores each answer. The first trial has none, so that it shares its cache entries with a run
        # without repeats.
        repeats = []
        for trial in range(1, self.adapter_spec.num_trials):
            for state in states:
                request = replace(state.request, random=str(trial))
                request = with_sampling(request, settings.sampling, trial)
                repeats.append(replace(state, train_trial_index=trial, request=request))
        return states + repeats

    def _adapt_named(self, instance: Instance) -> RequestState:
        try:
            return self._adapt(instance)
        except InputError as error:
            raise InputError(
                f"{instance.sub_split}: instance {instance.id}: {error}"
            ) from error

    def _adapt(self, instance: Instance) -> RequestState:
        spec = self.adapter_spec
        sample = Sample.from_json(instance.extra_data)
        max_tokens = self._max_tokens(sample)
        settings = sample.request
        style = self._style(sample, is_conversation=bool(instance.input.messages))
        prompt = _prompt(instance, sample, style)
        messages = instance.input.messages
        fitted = self._fit(instance, prompt, sample, max_tokens, style)
        if messages:
            first = _first_turn(messages)
            messages = [*messages]
            messages[first] = {**messages[first], "content": fitted.prompt}
        elif self.takes_both_styles and style == "chat":
            messages = []  # for a client that takes both styles, this means a chat and None a completion
        request = Request(
            model=spec.model,
            model_deployment=spec.model_deployment,
            prompt="" if messages else fitted.prompt,
            messages=messages,
            num_completions=spec.num_outputs,
            temperature=spec.temperature,
            max_tokens=max_tokens,
            # Chats have no stop sequences of ours (HELMET scripts/run_api.sh), only the stop sequences of HELM's run
            # expanders.
            stop_sequences=[
                *spec.stop_sequences,
                *(sample.stop if style == "completion" else []),
            ],
            random=spec.random,
        )
        request = with_sampling(request, settings.sampling)
        sent = sample.extend(style=style, prompt_tokens=fitted.tokens)
        # A context has a question of its own only in the last message. A cut can have removed a part of the question.
        if sample.context_span and not (messages and first < len(messages) - 1):
            rest = prompt[sample.context_span[1] :]
            sent = sent.extend(rest=len(rest) if fitted.prompt.endswith(rest) else None)
        if settings.scores_given_texts:
            gold = _gold(instance, settings.metric)
            request = with_answers(
                request,
                gold,
                _context(sent, fitted.prompt),
                finds_key_tokens=settings.metric == LONGPPL,
            )
        # The requests of a program have other lengths.
        if fitted.tokens is None and not sample.method:
            sent = sent.extend(
                fewest_tokens=estimate_fewest_tokens(
                    [fitted.prompt, *_others(instance)]
                )
            )
        return RequestState(
            instance=replace(instance, extra_data=sent.to_json()),
            # These are HELM's fields for multiple choice and demonstrations. No task of ours uses them.
            reference_index=None,
            request_mode=None,
            train_trial_index=0,
            output_mapping=None,
            request=request,
            result=None,
            num_train_instances=0,
            prompt_truncated=fitted.cut,
        )

    def _style(self, sample: Sample, is_conversation: bool) -> Style:
        """Return the style in which an instance is sent."""
        asked = sample.request.style
        if asked == "auto" and sample.request.scores_given_texts:
            # A gold answer follows a completion; servers can score no other prompt.
            asked = "completion"
        if is_conversation and asked != "completion" and self.sends_messages:
            return "chat"
        if asked != "auto":
            return asked
        return self.deployment_style or ("chat" if sample.chat else "completion")

    def _fit(
        self,
        instance: Instance,
        prompt: str,
        sample: Sample,
        max_tokens: int,
        style: Style,
    ) -> FittedPrompt:
        """Cut the first user turn so that the prompt fits. The program of a method gets it whole."""
        if sample.method:
            return FittedPrompt(prompt)
        if instance.input.messages is not None and not (
            style == "chat" and self.sends_messages
        ):
            raise InputError(
                "the prompt is a conversation, which deployment"
                f" {self.adapter_spec.model_deployment!r} cannot send (style={style});"
                " use style=chat and a client that sends messages, such as OpenAI's"
            )
        try:
            return self.truncator.fit(
                prompt, sample, max_tokens, style, _others(instance)
            )
        except NoRoomError:
            # With truncation=error, a single error later names all prompts that are too long.
            if sample.request.truncation == "error":
                return FittedPrompt(prompt, cut=True)
            raise

    def _max_tokens(self, sample: Sample) -> int:
        # The spec's budget is the largest one of the run's tasks, and HELM's run expanders can change it. A larger
        # value raises every task's budget by the same number of tokens. A smaller value is an upper limit.
        raised = max(0, self.adapter_spec.max_tokens - sample.run_max_tokens)
        return min(sample.max_tokens + raised, self.adapter_spec.max_tokens)

    def _excess(self, state: RequestState) -> int:
        if not state.prompt_truncated:
            return 0
        sample = Sample.from_json(state.instance.extra_data)
        assert sample.style
        prompt = _prompt(state.instance, sample, sample.style)
        return self.truncator.excess(
            prompt,
            sample,
            self._max_tokens(sample),
            sample.style,
            _others(state.instance),
        )


def _prompt(instance: Instance, sample: Sample, style: Style) -> str:
    """Return the first user turn in the style that is sent. No other turn can be cut."""
    messages = instance.input.messages
    text = str(
        messages[_first_turn(messages)]["content"] if messages else instance.input.text
    )
    if style == "chat":
        return text
    return text + (sample.separator + sample.answer_prefix)


def _gold(instance: Instance, metric: MetricArgument) -> list[str]:
    """Return the different gold answers that are scored; none if the prompt is."""
    if metric != LIKELIHOOD:
        return []
    texts = (reference.output.text for reference in instance.references)
    gold = list(dict.fromkeys(text for text in texts if text.strip()))
    if not gold:
        raise InputError(f"it has no gold answer, which metric={LIKELIHOOD} needs")
    return gold


def _context(sent: Sample, prompt: str) -> tuple[int, int] | None:
    """Return [start, end) of the context in a prompt that can have been cut, if it is known."""
    if sent.rest is None or sent.context_span is None:
        return None
    start = sent.context_span[0]
    end = len(prompt) - sent.rest
    if 0 <= start < end:
        return (start, end)
    return None


def _others(instance: Instance) -> list[str]:
    messages = instance.input.messages
    if not messages:
        return []
    first = _first_turn(messages)
    others = []
    for index, message in enumerate(messages):
        if index != first:
            others.append(message_text(message))
    return others


def _first_turn(messages: Sequence[Message]) -> int:
    """Return the index of the first message of the user. The long context of a conversation is in it."""
    return next(
        index for index, message in enumerate(messages) if message["role"] == "user"
    )


def _each(
    function: Callable[[_Item], _Result],
    items: list[_Item],
    workers: int,
) -> list[_Result]:
    if workers < 2:
        return [function(item) for item in items]

    # A future for each short prompt would cost as much as the prompt.
    def call(first: int) -> list[_Result]:
        return [function(item) for item in items[first::workers]]

    with ThreadPoolExecutor(workers) as pool:
        shares = list(pool.map(call, range(workers)))
    return [shares[number % workers][number // workers] for number in range(len(items))]
