"""Finds what the stack around a model changes: templates, cut prompts, stops, sampling, reasoning, other models.

Each check sends a few short requests, and compares the server's count of tokens, or the answers, with what is right.
"""

import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from helm_longctx.failures import Failure, failure_of_error
from helm_longctx.helm_api import Request, RequestResult
from helm_longctx.models.apis.answer_logprobs import (
    Logprobs,
    mean_difference,
    read_logprobs,
)
from helm_longctx.models.apis.parameters import Change
from helm_longctx.models.apis.prefix_cache import fill_cold_fields, find_cold_fields
from helm_longctx.models.apis.protocol import Body
from helm_longctx.models.apis.sending import ask_again
from helm_longctx.models.endpoints.probe import ProbedEndpoint, make_client
from helm_longctx.models.results import answer_of, failure_of, usage_of
from helm_longctx.models.sampling import with_fields
from helm_longctx.models.scoring import AnswerRequest
from helm_longctx.models.token_kinds import KINDS
from helm_longctx.tasks.lengths import length_label
from helm_longctx.tasks.token_estimate import estimate_tokens

_Finding = tuple[bool | None, str]
"""(True: as it must be, False: a fault, None: a note), and a line of text about it."""

_Messages = list[dict[str, str]]

_WORDS = (
    "The old mill by the river has a red roof and three green doors, and nobody has"
    " lived there for many years. " * 4
)

_LONGEST = 32 * 1024
"""Tokens of the longest prompt that is sent."""

_LOST = 0.5
"""A turn of which the server counts less than this share of its estimated tokens is not in the prompt."""

_CUT = 0.7
"""A prompt of which the server counts less than this share of what shorter ones let expect is cut."""

_REPEATS = 3

_SAME_REQUESTS = 20
_OPEN_QUESTION = "Tell me about a city by a river."
_OPEN_TOKENS = 16
"""Equal chats that are sent to see whether several builds answer, what they ask, and the tokens of an answer."""

_TOP = 5
"""Number of most likely tokens that the server is asked for."""

_LEAST_TEXTS = 3
"""Fewest answers with a second text that can come at equal steps by more than chance."""

_APART = 0.02
"""Nats for each token by which two builds differ at least."""

_MARKERS = ("\n\n", "\n###", "User:", "<|im_end|>", "</s>")
"""Texts that are often set as stop sequences by a server or a proxy."""


class Stack:
    """Asks an endpoint.

    Args:
        endpoint: what the probe found.
        tokenizer: a tokenizer of transformers with its chat template, or None if none is known.
    """

    def __init__(self, endpoint: ProbedEndpoint, tokenizer: Any = None):
        self.endpoint = endpoint
        self.tokenizer = tokenizer
        self.client = make_client(endpoint)
        self.name = f"endpoint/{endpoint.model}"
        self._template = 0
        """Tokens that the template adds to a turn, with a few words; 0 if the server counts none."""
        self._cached: _Messages = []
        """A chat that was sent again, and that the server says it read from its cache, or empty if it never says so."""

    def find_faults(self) -> Iterator[_Finding]:
        """Yield what was found, a line for each check."""
        if "chat" not in self.endpoint.routes:
            yield (
                None,
                "the server answers no chats, so templates and turns are not checked",
            )
            return
        yield from self._check_turns()
        if self.tokenizer is not None:
            yield from self._check_tokenizer()
        yield from self._check_lengths()
        yield from self._check_sampling()
        yield from self._check_builds()
        yield from self._check_stops()

    def _request(self, messages: _Messages, max_tokens: int) -> Request:
        return Request(
            model=self.name,
            model_deployment=self.name,
            messages=messages,
            max_tokens=max_tokens,
            temperature=0.0,
        )

    def _ask(self, messages: _Messages, max_tokens: int = 64) -> RequestResult:
        return ask_again(self.client, self._request(messages, max_tokens))

    def _count(self, messages: _Messages) -> int | None:
        """Return the server's count of a chat's tokens, or None if there is none."""
        usage = usage_of(self._ask(messages, 16))
        return usage.input_tokens if usage else None

    def _check_turns(self) -> Iterator[_Finding]:
        """Check that a system turn and earlier turns are in the prompt, and whose answer it is."""
        question = [_turn("user", "Reply with the word yes.")]
        result = self._ask(question)
        if failure := failure_of(result):
            yield (
                None if failure.is_retriable else False,
                f"a chat of one word fails: {failure.value}",
            )
            return
        other = answer_of(result).other_model
        asked = self.endpoint.model
        yield (
            not other,
            f"answers as {other!r}, not as {asked!r}"
            if other
            else f"answers as {asked!r}",
        )
        usage = usage_of(result)
        yield from _find_reasoning_faults(result)
        if usage is None:
            yield (
                None,
                "the server counts no tokens, so it cannot be seen whether it cuts"
                " prompts or drops turns",
            )
            return
        self._template = usage.input_tokens
        expected = estimate_tokens(_WORDS)
        for what, earlier in {
            "a system turn": [_turn("system", _WORDS)],
            "earlier turns": [_turn("user", _WORDS), _turn("assistant", "I see.")],
        }.items():
            result = self._ask([*earlier, *question], 16)
            failure = failure_of(result)
            longer = usage_of(result)
            # A template that raises an error is a status of 500 in some servers.
            if (
                failure
                and failure.is_retriable
                and not re.search(r"(status|code:) 500\b", result.error or "")
            ):
                yield None, f"a chat with {what} has no answer: {failure.value}"
                continue
            if longer is None:
                yield (
                    False,
                    f"a chat with {what} has no answer: the server's template refuses it",
                )
                continue
            added = longer.input_tokens - usage.input_tokens
            fine = added >= _LOST * expected
            yield (
                fine,
                f"{what} of about {expected} tokens {'adds' if fine else 'is dropped: it adds'} {added} tokens",
            )

    def _check_tokenizer(self) -> Iterator[_Finding]:
        """Compare the counts of turns and kinds of text by the server with those by the tokenizer and its template."""
        takes_turns = False
        for what, messages in {
            "one turn": [_turn("user", _WORDS)],
            "a system turn": [_turn("system", "Be brief."), _turn("user", _WORDS)],
            "three turns": [
                _turn("user", "Hello."),
                _turn("assistant", "Hello!"),
                _turn("user", _WORDS),
            ],
        }.items():
            try:
                ours, theirs = self._count_twice(messages)
            except Exception as error:  # templates raise errors of any type
                yield (
                    None,
                    f"the tokenizer's template does not take {what} ({type(error).__name__})",
                )
                continue
            takes_turns = True
            if theirs is None:
                continue
            why = {0: "", 1: "; a token at the start is doubled or missing"}.get(
                abs(theirs - ours), "; the templates differ"
            )
            yield (
                ours == theirs,
                f"{what}: the server counts {theirs} tokens, the tokenizer {ours}{why}",
            )
        kinds = {}
        for name, kind in KINDS.items():
            if takes_turns:
                kinds[name] = [_turn("user", kind.sample)]
        counts = {}
        for name, messages in kinds.items():
            counts[name] = self._count_twice(messages)
        yield from _compare_counts(
            {name: (ours, theirs) for name, (ours, theirs) in counts.items() if theirs}
        )

    def _count_twice(self, messages: _Messages) -> tuple[int, int | None]:
        """Return the tokenizer's count of a chat's tokens, and the server's."""
        tokens = self.tokenizer.apply_chat_template(
            messages, add_generation_prompt=True, return_dict=True
        )
        return len(tokens["input_ids"]), self._count(messages)

    def _check_lengths(self) -> Iterator[_Finding]:
        """Check that longer prompts are counted as shorter ones let expect."""
        longest = min(self.endpoint.context or _LONGEST, _LONGEST)
        tokens = estimate_tokens(_WORDS)
        ratio = None
        before = 0
        for length in (128, 512, 2048, 8192, 32768):
            if length > longest - 512:
                break
            text = _WORDS * (length // tokens)
            count = self._count([_turn("user", text)])
            if count is None:
                yield None, f"a prompt of {length_label(length)} tokens has no answer"
                return
            text_tokens = count - self._template
            if ratio and text_tokens < _CUT * ratio * estimate_tokens(text):
                yield (
                    False,
                    f"the server cuts prompts: of about {length_label(length)} tokens"
                    f" it counts {count:,}",
                )
                return
            ratio = text_tokens / estimate_tokens(text)
            before = length
        if before:
            yield True, f"prompts up to {length_label(before)} tokens are not cut"

    def _check_sampling(self) -> Iterator[_Finding]:
        """Check whether answers repeat at a temperature of 0, and what happens without one."""
        question = [_turn("user", "Write a list of ten random words.")]
        greedy = self._answers(question)
        fine = len(set(greedy)) == 1
        if fine:
            said = "are equal"
        else:
            said = "differ, so scores have noise"
        yield fine or None, f"{_REPEATS} greedy answers {said}"
        changes = self.client.parameters.changes
        self.client.parameters.changes = (*changes, Change("temperature"))
        free = self._answers(question)
        self.client.parameters.changes = changes
        if fine and set(free) != set(greedy):
            yield (
                None,
                "without a temperature the server samples; helm-longctx always sends one",
            )

    def _answers(self, messages: _Messages) -> list[str]:
        results = []
        for _ in range(_REPEATS):
            results.append(self._ask(messages))
        if any(usage.cached_tokens for usage in map(usage_of, results) if usage):
            self._cached = messages
        answers = []
        for result in results:
            if result.completions:
                answers.append(result.completions[0].text)
        return answers

    def _check_builds(self) -> Iterator[_Finding]:
        """Check whether equal chats are answered by one build.

        Log-probabilities of the answers tell it. Without them, a build at regular steps is told by its text. A prefix
        cache can round what it keeps, so equal chats of one build can differ by as much as chats of two. If the server
        can be asked to, it therefore answers these chats past its cache.
        """
        if self._cached:
            cold = find_cold_fields(self._count_cached)
        else:
            cold = {}
        request = with_fields(
            AnswerRequest,
            self._request([_turn("user", _OPEN_QUESTION)], _OPEN_TOKENS),
            top=_TOP,
        )
        answers, texts = self._ask_equal(request, cold)
        others, has_logprobs = _find_others(answers, texts)
        if others:
            # A change of the load while the chats are sent looks like two builds, but not mixed, and mostly only once.
            again = False
            if not is_one_change(others, len(texts)):
                other_answers, other_texts = self._ask_equal(request, cold)
                other_places, _ = _find_others(other_answers, other_texts)
                again = bool(other_places) and not is_one_change(
                    other_places, len(other_texts)
                )
            said = (
                f"{len(others)} of {len(texts)} replies to the same chat come from another one"
                f"{_say_period(others)}"
            )
            if again:
                yield (
                    False,
                    f"two builds answer: {said}; or one build computes replies in two"
                    " ways, for example by the size of its batches",
                )
            else:
                yield (
                    None,
                    f"two builds may answer: {said}, but not mixed with the others each"
                    " time that the chats are sent, as after a change of the load or"
                    " of the build",
                )
        elif not has_logprobs:
            yield (
                None,
                "the server gives no log-probabilities of answers, so several builds"
                " look like noise",
            )
        else:
            yield True, f"{len(answers)} replies to the same chat come from one build"

    def _ask_equal(
        self,
        request: Request,
        fields: Mapping[str, Any],
    ) -> tuple[list[Logprobs], list[str]]:
        """Return the log-probabilities and the texts of the answers to equal requests with fields."""
        replies = self._send_equal(request, fields)
        answers: list[Logprobs] = []
        texts: list[str] = []
        for reply in replies:
            answers.append(tuple(read_logprobs(reply)))
        for reply in replies:
            for output in self.client.result(request, reply).completions:
                texts.append(output.text)
        return answers, texts

    @contextmanager
    def _with_fields(self, fields: Mapping[str, Any]) -> Iterator[None]:
        """Send the requests of the block with fields that keep them away from the server's cache."""
        settings = self.client.settings
        body = {**(settings.extra_body or {}), **fill_cold_fields(fields)}
        self.client.settings = replace(settings, extra_body=body)
        try:
            yield
        finally:
            self.client.settings = settings

    def _count_cached(self, fields: Mapping[str, Any]) -> int | None:
        """Send the cached chat with fields; see `find_cold_fields`."""
        with self._with_fields(fields):
            usage = usage_of(self._ask(self._cached, 16))
        return usage.cached_tokens if usage else None

    def _send_equal(self, request: Request, fields: Mapping[str, Any]) -> list[Body]:
        """Return the replies to equal requests with fields. If another build refuses the fields, none has them."""
        replies = []
        for _ in range(_SAME_REQUESTS):
            try:
                with self._with_fields(fields):
                    replies.append(self.client.ask(request))
            except Exception as error:  # the packages have their own errors, and a missing reply says nothing here
                if fields and failure_of_error(error) is Failure.BAD_REQUEST:
                    return self._send_equal(request, {})
        return replies

    def _check_stops(self) -> Iterator[_Finding]:
        """Check whether answers end at texts that are often set as stop sequences."""
        for marker in _MARKERS:
            text = f"alpha{marker}bravo"
            result = self._ask(
                [_turn("user", f"Repeat this text exactly, and nothing else:\n{text}")]
            )
            if result.completions:
                answer = result.completions[0].text
            else:
                answer = ""
            if answer.strip().endswith("alpha") and "bravo" not in answer:
                yield (
                    None,
                    f"an answer ends before {marker!r}: the server may have it as a stop sequence",
                )


def _find_reasoning_faults(result: RequestResult) -> Iterator[_Finding]:
    """Yield what an answer to a short question shows of the model's reasoning and of the server's parser for it."""
    answer = answer_of(result)
    if answer.is_only_in_reasoning:
        yield (
            False,
            "the answer is in the reasoning field, and the content is empty: the"
            " server's reasoning parser takes answers for reasoning; start the server"
            " with the model's own parser, or without one (--reasoning-parser of vLLM"
            " and SGLang), otherwise all scores are 0",
        )
        return
    if answer.suspects_reasoning():
        yield (
            None,
            "answers may contain reasoning: they begin with a tag or a channel that"
            " helm-longctx does not know, and are scored with it; start the server with"
            " a reasoning parser",
        )
    has_reasoning = answer.reasoning is not None
    if has_reasoning or (answer.usage is not None and answer.usage.reasoning_tokens):
        is_in_text = has_reasoning and answer.thinking is None
        if is_in_text:
            where = ", in its text, from which it is removed"
        else:
            where = ""
        yield (
            None,
            f"the model reasons before it answers{where}; give thinking_tokens, or"
            " switch it off (reasoning_effort)",
        )


def _compare_counts(counts: Mapping[str, tuple[int, int]]) -> Iterator[_Finding]:
    """Yield the kinds of text whose counts differ from the tokenizer's, beyond what most of them differ by.

    Args:
        counts: for each kind the tokenizer's count of a text, and the server's.
    """
    # A template adds the same number of tokens to each text.
    added = Counter(theirs - ours for ours, theirs in counts.values()).most_common(1)
    equal = []
    for name, (ours, theirs) in counts.items():
        if theirs - ours == added[0][0]:
            equal.append(name)
    if equal:
        yield (
            True,
            f"the server divides texts as the tokenizer does: {', '.join(equal)}",
        )
    for name, (ours, theirs) in counts.items():
        if name not in equal:
            said = (
                f"the server counts {theirs - added[0][0]} tokens, the tokenizer {ours}"
            )
            yield (
                False,
                f"{name}: {said}; the server divides or changes such texts in another way",
            )


def _find_others(
    answers: Sequence[Logprobs],
    texts: Sequence[str],
) -> tuple[list[int], bool]:
    """Return the indexes of answers that come from another build than most, and whether log-probabilities tell them."""
    has_logprobs = len(answers) >= _SAME_REQUESTS / 2 and all(answers)
    return find_other_build(answers) if has_logprobs else find_regular_text(
        texts
    ), has_logprobs


def is_one_change(indexes: Sequence[int], count: int) -> bool:
    """Return whether answers are the first or the last ones of all, as if a server or its load had changed once."""
    return list(indexes) in (
        list(range(len(indexes))),
        list(range(count - len(indexes), count)),
    )


def find_other_build(answers: Sequence[Logprobs]) -> list[int]:
    """Return the indexes of the answers that come from another build than most, or empty if there is one build."""
    apart = np.array(
        [[mean_difference(one, other) for other in answers] for one in answers]
    )
    return find_other_group((apart + apart.T) / 2)


def find_other_group(apart: NDArray[np.float64]) -> list[int]:
    """Return the indexes of the smaller one of two groups of answers, or empty if there is one group.

    Noise moves each answer by itself. Two builds give two groups of answers: within a group
    answers are closer than half of the distance between the groups.

    Args:
        apart: shape (answers, answers): how far each two answers are apart, in nats.
    """
    usual = int(np.median(apart, axis=1).argmin())
    order = np.argsort(apart[usual])
    steps = np.diff(apart[usual][order])
    first = len(apart) // 2  # most answers are of one build
    start = first + int(steps[first:].argmax()) + 1
    most = order[:start]
    others = order[start:]
    between = float(np.median(apart[np.ix_(most, others)]))
    within = max(float(apart[np.ix_(group, group)].max()) for group in (most, others))
    is_apart = len(others) > 1 and between > _APART and within < between / 2
    return sorted(others.tolist()) if is_apart else []


def find_regular_text(texts: Sequence[str]) -> list[int]:
    """Return the indexes of a second text that comes at equal steps from the start to the end, or empty if there is none.

    If two texts alternate by chance in 20 answers, the rarer one has such indexes in less than 1 % of cases.
    """
    counts = Counter(texts).most_common()
    if len(counts) != 2 or counts[1][1] < _LEAST_TEXTS:
        return []
    others = []
    for index, text in enumerate(texts):
        if text == counts[1][0]:
            others.append(index)
    step = others[1] - others[0]
    if others == list(range(others[0] % step, len(texts), step)):
        return others
    return []


def _say_period(indexes: Sequence[int]) -> str:
    """Say that each so many-th reply is meant, if it is so."""
    steps = set()
    for before, after in pairwise(indexes):
        steps.add(after - before)
    if len(steps) == 1:
        return f", each {steps.pop()}th"
    return ""


def _turn(role: str, content: str) -> dict[str, str]:
    return {"role": role, "content": content}
