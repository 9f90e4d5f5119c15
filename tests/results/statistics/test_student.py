"""Tests the quantiles of Student's distribution against SciPy."""

import subprocess
import sys

import pytest
from scipy.special import stdtrit

from helm_longctx.results.statistics.student import student_quantile

FREEDOMS = (1, 1.2, 1.5, 2, 2.7, 3, 5, 9.99, 30, 99, 199.9, 200, 999, 20_000, 1e7)


@pytest.mark.parametrize("share", [0.6, 0.9, 0.95, 0.975, 0.995])
def test_a_quantile_equals_scipys(share: float) -> None:
    """A quantile has at least ten digits of SciPy's, for all degrees of freedom."""
    for freedom in FREEDOMS:
        expected = pytest.approx(stdtrit(freedom, share), rel=1e-10)
        assert student_quantile(freedom, share) == expected, freedom


def test_an_interval_imports_no_scipy() -> None:
    """The interval of a mean with few or many values is computed without SciPy."""
    code = (
        "import sys; from helm_longctx.results.statistics.intervals import mean_interval;"
        " mean_interval([0.1, 0.7, 0.2] * 5); mean_interval([0.1, 7, 0.2] * 500);"
        " print('scipy' in sys.modules)"
    )
    process = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True
    )
    assert process.stdout == "False\n"
