"""Clipping holds in exact arithmetic."""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any

import hypothesis.extra.numpy as hnp
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tacit.errors import InputError, UsageError
from tacit.privacy import clip_to_ball


@given(
    hnp.arrays(
        np.float64,
        st.tuples(st.integers(1, 4), st.integers(1, 9)),
        elements=st.floats(-1e300, 1e300),
    ),
    st.floats(1e-6, 1e6),
)
def test_clip_to_ball_in_exact_arithmetic(X: Any, radius: float) -> None:
    for norm in ("L1", "L2", "Linf"):
        clipped = clip_to_ball(X, radius, norm)
        for before, after in zip(X, clipped, strict=True):
            exact = [abs(Fraction(v)) for v in after]
            limit = Fraction(radius)
            if norm == "L1":
                assert sum(exact) <= limit
            elif norm == "L2":
                assert sum(v * v for v in exact) <= limit**2
            else:
                assert max(exact) <= limit
            if np.abs(before).sum() < 0.999 * radius:  # then it is inside in every norm
                np.testing.assert_array_equal(before, after)


def test_clip_to_ball_keeps_the_direction() -> None:
    X = np.array([[3.0, 4.0], [0.3, 0.4], [0.0, 0.0], [1e-300, 0.0]])
    clipped = clip_to_ball(X, 1.0)
    np.testing.assert_allclose(clipped[0], [0.6, 0.8], rtol=1e-14)
    np.testing.assert_array_equal(clipped[1:], X[1:])
    np.testing.assert_allclose(clip_to_ball(X, 7.0, "L1")[0], [3.0, 4.0], rtol=1e-14)
    assert X[0, 0] == 3.0  # the input is not changed


def test_wrong_calls() -> None:
    with pytest.raises(UsageError, match="radius"):
        clip_to_ball([[1.0]], 0.0)
    with pytest.raises(UsageError, match="norm"):
        clip_to_ball([[1.0]], 1.0, "L3")
    with pytest.raises(InputError, match="NaN"):
        clip_to_ball([[math.nan]])
