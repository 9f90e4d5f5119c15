"""The metric of log-probabilities: of gold answers with and without the context, and of a text by position."""

import math
from collections.abc import Iterator, Sequence

from helm.benchmark.adaptation.request_state import RequestState
from helm.common.request import GeneratedOutput

from helm_longctx.helm.metric import LongContextMetric
from helm_longctx.tasks.answer import Answer
from helm_longctx.tasks.logprobs import WINDOW, mean_logprob
from helm_longctx.tasks.metric_names import (
    ANSWER_LOGPROB,
    KEY_LOGPROB_SUM,
    KEY_TOKENS,
    MEAN_LOGPROB,
    depth_score,
    nearest_depth,
    window_logprob,
)
from helm_longctx.tasks.sample import Sample
from helm_longctx.tasks.task import MAIN_METRIC


class LikelihoodMetric(LongContextMetric):
    """Reads log-probabilities instead of answers. The score is the likelihood of a token, in 0 to 1."""

    def _scores(
        self,
        state: RequestState,
        sample: Sample,
        answer: Answer,
    ) -> Iterator[tuple[str, float]]:
        assert state.result
        outputs = state.result.completions
        answers = state.request.answers
        if not answers:
            assert answer.windows is not None
            logprob = mean_logprob(answer.windows)
            yield MAIN_METRIC, math.exp(logprob)
            yield MEAN_LOGPROB, logprob
            for index, window in enumerate(answer.windows):
                if window.is_representative:
                    yield window_logprob((index + 1) * WINDOW), window.logprob
            if answer.key_tokens is not None:
                yield KEY_TOKENS, answer.key_tokens.tokens
                yield KEY_LOGPROB_SUM, answer.key_tokens.logprob
            return
        statistics = _likelihoods(outputs, len(answers))
        likelihood = math.exp(statistics[MEAN_LOGPROB])
        yield MAIN_METRIC, likelihood
        if sample.depth is not None:
            yield depth_score(nearest_depth(sample.depth)), likelihood
        yield from statistics.items()


def _likelihoods(outputs: Sequence[GeneratedOutput], answers: int) -> dict[str, float]:
    """Return the log-probabilities, in nats, of gold answers by statistic from a `ScoringRequest`'s outputs."""
    values = _values(outputs[:answers])
    if not (without := outputs[answers:]):
        return values
    bare = _values(without)
    gains = {f"{name}_gain": values[name] - bare[name] for name in values}
    return {
        **values,
        **{f"{name}_without_context": value for name, value in bare.items()},
        **gains,
    }


def _values(outputs: Sequence[GeneratedOutput]) -> dict[str, float]:
    """Return the values of the best answer, by its mean and by its sum over tokens, and of any of the answers."""
    sums = [output.logprob for output in outputs]
    best = max(sums)
    shares = math.fsum(math.exp(logprob - best) for logprob in sums)
    return {
        MEAN_LOGPROB: max(output.logprob / len(output.tokens) for output in outputs),
        ANSWER_LOGPROB: best,
        "any_answer_logprob": best + math.log(shares),
    }
