"""Programs are told how much noise there will be, not only how much was promised."""

from __future__ import annotations

import math

import pytest

from tacit.privacy.accounting import gaussian_scale
from tacit.privacy.promise import Promise
from tacit.programs.reckoned import reckoned


@pytest.mark.parametrize("epsilon", [0.01, 0.3, 1.0, 10.0, 50.0])
@pytest.mark.parametrize("spread", [1.2, math.sqrt(2), 3.0, 10.0])
def test_one_place_would_add_as_much(epsilon: float, spread: float) -> None:
    found = reckoned(Promise(epsilon, 1e-6), spread)
    wanted = spread * gaussian_scale(epsilon, 1e-6)
    assert gaussian_scale(found.epsilon, found.delta) == pytest.approx(wanted, rel=1e-4)
    assert found.delta == 1e-6


def test_pure_promises_shrink_by_the_spread_and_others_stay() -> None:
    assert reckoned(Promise(1.0), 2.0) == Promise(0.5)
    assert reckoned(Promise(1.0, 1e-6), 1.0) == Promise(1.0, 1e-6)
    assert not reckoned(Promise(math.inf), 2.0).is_private
