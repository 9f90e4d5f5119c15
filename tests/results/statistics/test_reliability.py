"""Variance components, signal to noise and monotonicity are compared with statsmodels and with numbers computed by hand."""

from __future__ import annotations

import math

import numpy as np
import pytest

from helm_longctx.results.statistics.power import signal_to_noise, variance_components


@pytest.mark.parametrize("sizes", [[3] * 20, [1, 2, 3, 4, 5] * 4])
def test_variance_components_are_those_of_statsmodels(sizes: list[int]) -> None:
    """Variances are the mean squares of the analysis of variance and, if sizes are equal, the mixed model's estimates."""
    import pandas as pd
    import statsmodels.formula.api as smf
    from statsmodels.stats.anova import anova_lm

    random = np.random.default_rng(0)
    groups = np.repeat(np.arange(len(sizes)), sizes)
    scores = random.normal(0, 1, len(sizes))[groups] + random.normal(
        0, 0.5, len(groups)
    )
    components = variance_components(scores, list(groups))
    data = pd.DataFrame({"score": scores, "question": groups})
    squares = anova_lm(smf.ols("score ~ C(question)", data).fit())["mean_sq"]
    size = (len(groups) - sum(s**2 for s in sizes) / len(groups)) / (len(sizes) - 1)
    assert components.within == pytest.approx(squares["Residual"])
    assert components.between == pytest.approx(
        (squares["C(question)"] - squares["Residual"]) / size
    )
    if len(set(sizes)) == 1:
        mixed = smf.mixedlm("score ~ 1", data, groups="question").fit()
        assert (components.between, components.within) == pytest.approx(
            (float(mixed.cov_re.iloc[0, 0]), mixed.scale), rel=1e-3
        )
        assert components.share_between == pytest.approx(0.8, abs=0.1)


def test_repeats_that_never_differ() -> None:
    """Repeats that never differ have all variance between questions; without repeats, the two variances cannot be told apart."""
    components = variance_components([1, 1, 0, 0], ["a", "a", "b", "b"])
    assert (components.between, components.within, components.deviation_of_mean) == (
        0.5,
        0.0,
        0.0,
    )
    assert variance_components([1, 0, 1], "abc").between == 0.0
    assert math.isnan(variance_components([1, 0], "aa").between)


def test_signal_to_noise() -> None:
    """The signal is the spread of the models without the variance of the errors."""
    random = np.random.default_rng(0)
    truth = random.normal(0.5, 0.1, 5000)
    ratio = signal_to_noise(truth + random.normal(0, 0.05, 5000), np.full(5000, 0.05))
    assert (ratio.signal, ratio.noise, ratio.ratio) == pytest.approx(
        (0.1, 0.05, 2.0), rel=0.03
    )
    assert signal_to_noise([0.5, 0.5], [0.1, 0.1]).ratio == 0
    assert signal_to_noise([0.4, 0.5], [0.0, 0.0]).ratio == math.inf


def test_errors_of_rounding_are_no_noise() -> None:
    """Equal scores whose errors differ from 0 only by rounding have an infinite ratio, or 0 if the means are equal, too."""
    assert signal_to_noise([0.4, 0.5], [1e-17, 2e-17]).ratio == math.inf
    assert signal_to_noise([0.5, 0.5 + 1e-16], [1e-17, 0.0]).ratio == 0
