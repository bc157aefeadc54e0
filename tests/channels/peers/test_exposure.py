"""What one part of the noise hides alone, by enumeration and by the project's accounting."""

from __future__ import annotations

import math
import sys
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
from scipy.special import gammaln

sys.path.insert(0, str(Path(__file__).parent))

from small_network import key_of, pact_of, peer_of

from tacit.channels.peers.exposure import exposure, laplace_part_epsilon, require_listed
from tacit.channels.peers.pact import pact_from_bytes
from tacit.channels.studies.tables import Terms
from tacit.errors import InputError
from tacit.privacy.accounting.gaussian import smallest_epsilon

PURE = Terms(epsilon=1.0, delta=0.0)
EVERYONE = tuple(sorted(key_of(place).public_key for place in range(6)))


def log_part(k: int, scale: float, parts: int) -> float:
    """ln P[X = k] of the difference of two negative binomials of 1/parts, summed up."""
    r, p, j = 1 / parts, math.exp(-1 / scale), np.arange(int(60 * scale))

    def single(n: np.ndarray[tuple[int, ...], np.dtype[np.int64]]) -> np.ndarray:  # type: ignore[type-arg]
        found = gammaln(r + n) - gammaln(r) - gammaln(n + 1) + n * math.log(p)
        return np.asarray(found + r * math.log1p(-p))

    return math.log(float(np.exp(single(j) + single(j + k)).sum()))


@pytest.mark.parametrize("parts", [2, 3, 9, 49])
@pytest.mark.parametrize(("scale", "shift"), [(8.0, 8), (300.0, 30), (300.0, 300), (5000.0, 2500)])
def test_one_coordinate_by_enumeration(scale: float, shift: int, parts: int) -> None:
    found = laplace_part_epsilon(scale, shift, 1, parts)
    assert found == pytest.approx(
        log_part(0, scale, parts) - log_part(shift, scale, parts), rel=1e-3
    )
    # … which is the worst: nowhere do the two laws differ more.
    logs = [log_part(abs(k), scale, parts) for k in range(-20, 21)]
    moved = [log_part(abs(k - shift), scale, parts) for k in range(-20, 21)]
    assert max(one - other for one, other in zip(logs, moved, strict=True)) <= found * (1 + 1e-3)


@pytest.mark.parametrize("parts", [2, 4])
def test_an_even_move_is_the_worst(parts: int) -> None:
    scale, shift = 30.0, 30

    def loss(step: int) -> float:
        return log_part(0, scale, parts) - log_part(step, scale, parts)

    even = laplace_part_epsilon(scale, shift, 2, parts)
    assert all(loss(a) + loss(shift - a) <= even + 1e-9 for a in range(shift + 1))


def test_a_single_part_of_one_is_the_promise() -> None:
    assert laplace_part_epsilon(1000.0, 1000.0, 1, 1) == pytest.approx(1.0, rel=1e-3)


def test_gaussian_parts_are_accounted_for_as_gaussians() -> None:
    """The whole noise has μ with ε(μ) = 1 at this δ; one of m parts has μ·√m."""
    delta = 1e-5
    low, high = 0.0, 10.0
    for _ in range(60):
        mu = (low + high) / 2
        low, high = (mu, high) if smallest_epsilon(mu, delta) < 1.0 else (low, mu)
    for size in (3, 4, 10, 20):
        found = exposure(pact_of(group_size=size))
        assert found is not None
        assert found.parts == size - 1
        wanted = smallest_epsilon(low * math.sqrt(found.parts), delta)
        assert found.epsilon == pytest.approx(wanted, rel=1e-3)


def test_it_grows_with_the_group_and_more_for_pure_promises() -> None:
    for terms in (Terms(epsilon=1.0, delta=1e-6), PURE):
        found = [exposure(pact_of(group_size=size, terms=terms)) for size in (3, 4, 6, 12)]
        figures = [one.epsilon for one in found if one is not None]
        assert len(figures) == 4
        assert all(one < other for one, other in pairwise(figures))
        assert figures[0] > 1
    pure, normal = exposure(pact_of(terms=PURE)), exposure(pact_of())
    assert pure is not None
    assert normal is not None
    assert pure.epsilon > 5 * normal.epsilon


def test_there_is_none_alone_or_as_published() -> None:
    assert exposure(pact_of(group_size=1)) is None
    assert exposure(pact_of(group_size=3, protocol="as-published")) is None


def test_pure_promises_need_a_list_of_members() -> None:
    opened = pact_of(terms=PURE)
    with pytest.raises(InputError, match=r"List the members .* or take delta above 0") as refused:
        require_listed(opened)
    assert "instead of 1" in str(refused.value)
    with pytest.raises(InputError, match="delta = 0"):
        peer_of(opened, 1)
    assert pact_from_bytes(opened.to_bytes()).digest == opened.digest  # it can be read
    for fine in (
        pact_of(terms=PURE, members=EVERYONE),
        pact_of(terms=PURE, group_size=1),
        pact_of(),
    ):
        require_listed(fine)
        assert peer_of(fine, 1)
