"""The verifier's own computation, against the accountants and against closed forms."""

from __future__ import annotations

import math
from fractions import Fraction

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tacit.errors import CertificateInvalid
from tacit.privacy import Adjacency, Bound, Norm, Release
from tacit.privacy.accounting import cost
from tacit.privacy.recompute import recomputed_epsilon

L1, L2, LINF = (Bound(norm, Fraction(1)) for norm in Norm)


def gaussian(sigma: float, count: int = 1, q: float = 1.0) -> Release:
    return Release("gaussian", L2, Fraction(sigma), count=count, sampling=Fraction(q))


def laplace(scale: float, count: int = 1, **more: object) -> Release:
    return Release("laplace", L1, Fraction(scale), count=count, **more)  # type: ignore[arg-type]


def asked(m: int, part: str | None = None) -> Release:
    parameters = {"m": Fraction(m), "p": Fraction(4, 5)}
    return Release("randomised-response", parameters=parameters, part=part)


CASES = {
    "laplace": [laplace(2.0, 3)],
    "one gaussian": [gaussian(3.0)],
    "many gaussians": [gaussian(30.0, 100), gaussian(50.0, 900)],
    "sampled gaussians": [gaussian(1.5627, 1000, 0.01)],
    "many laplaces": [laplace(20.0, 200)],
    "many exponentials": [Release("exponential", LINF, Fraction(20), count=200)],
    "mixed": [
        gaussian(20.0, 10),
        laplace(10.0, 5),
        Release("permute-and-flip", LINF, Fraction(40)),
    ],
    "sampled laplace": [laplace(1.0, 50, sampling=Fraction(1, 10))],
    "local": [
        Release("randomised-response", parameters={"m": Fraction(4), "p": Fraction(1, 2)}),
        Release("pq-perturbation", parameters={"p": Fraction(1, 2), "q": Fraction(1, 4)}),
        Release("hadamard-response", parameters={"p": Fraction(3, 4)}),
        Release(
            "subset-selection",
            parameters={"m": Fraction(9), "size": Fraction(2), "p": Fraction(1, 3)},
        ),
    ],
    "asked": [asked(4, "a"), asked(3, "b"), asked(2, "c"), asked(2)],
    "asked and placed": [
        asked(3, "a"),
        asked(3, "b"),
        laplace(3.0, part="c"),
        laplace(1.0, part="d"),
        asked(2, "e"),
        laplace(1.0, part="e"),
    ],
    "threshold": [
        Release(
            "above-threshold",
            LINF,
            count=3,
            parameters={"threshold_scale": Fraction(10), "query_scale": Fraction(20)},
        )
    ],
    "parallel": [laplace(5.0), laplace(3.0, part="a"), laplace(2.0, part="b")],
}


PURE = {"laplace", "local", "threshold", "parallel", "asked", "asked and placed"}


@pytest.mark.parametrize("case", CASES)
def test_two_computations_agree(case: str) -> None:
    releases = CASES[case]
    delta = 0.0 if case in PURE else 1e-6
    first = cost(releases, delta, Adjacency.ADD_REMOVE).epsilon
    second = recomputed_epsilon(releases, delta)
    assert second == pytest.approx(first, rel=1e-3)


def test_people_asked_stay_in_their_part() -> None:
    """Only the worst counts, whatever is exchanged; of parts by value, the worst two."""
    people = [asked(2, "a"), asked(3, "b"), asked(5, "c")]
    for adjacency in Adjacency:
        assert recomputed_epsilon(people, 0.0, adjacency) == pytest.approx(math.log(16))
    both = [*people, laplace(0.5, part="d"), laplace(1.0, part="e")]
    assert recomputed_epsilon(both, 0.0, Adjacency.REPLACE) == pytest.approx(3.0)
    assert recomputed_epsilon(both, 0.0, Adjacency.ADD_REMOVE) == pytest.approx(math.log(16))
    assert recomputed_epsilon(both[:-1], 0.0, Adjacency.REPLACE) == pytest.approx(math.log(16))


def test_parallel_parts() -> None:
    parts = [laplace(4.0, part="a"), laplace(2.0, part="b"), laplace(1.0, part="c"), laplace(8.0)]
    assert recomputed_epsilon(parts, 0.0, Adjacency.ADD_REMOVE) == pytest.approx(1 + 1 / 8)
    assert recomputed_epsilon(parts, 0.0, Adjacency.REPLACE) == pytest.approx(1.5 + 1 / 8)


@settings(max_examples=30, deadline=None)
@given(st.floats(0.3, 5), st.integers(1, 50), st.sampled_from([1e-9, 1e-6, 1e-3]))
def test_gaussians_compose_to_one(sigma: float, count: int, delta: float) -> None:
    many = recomputed_epsilon([gaussian(sigma * math.sqrt(count), count)], delta)
    one = recomputed_epsilon([gaussian(sigma)], delta)
    assert many == pytest.approx(one, rel=1e-9)


def test_no_delta_no_gaussian() -> None:
    assert recomputed_epsilon([gaussian(1.0)], 0.0) == math.inf


@pytest.mark.parametrize(
    "release",
    [
        Release("magic", L1, Fraction(1)),
        Release("laplace", L2, Fraction(1), length=2),
        Release("laplace", L1),
        Release("laplace", None, Fraction(1)),
        Release("gaussian", L2, Fraction(1), step=Fraction(1)),
        Release("randomised-response"),
        Release("randomised-response", parameters={"m": Fraction(3), "p": Fraction(1)}),
        # Numbers that no such mechanism can have: they would come out as nothing, or below it.
        Release("randomised-response", parameters={"m": Fraction(3, 2), "p": Fraction(2, 3)}),
        Release("randomised-response", parameters={"m": Fraction(-1), "p": Fraction(3)}),
        Release("pq-perturbation", parameters={"p": Fraction(3), "q": Fraction(2)}),
        Release("hadamard-response", parameters={"p": Fraction(0)}),
        Release(
            "subset-selection",
            parameters={"m": Fraction(4), "size": Fraction(3, 2), "p": Fraction(3, 8)},
        ),
        Release(
            "above-threshold",
            LINF,
            parameters={"threshold_scale": Fraction(-1), "query_scale": Fraction(9)},
        ),
    ],
)
def test_incomplete_releases_are_refused(release: Release) -> None:
    with pytest.raises(CertificateInvalid):
        recomputed_epsilon([release], 1e-6)


def test_sampling_needs_add_remove() -> None:
    with pytest.raises(CertificateInvalid, match="add-remove"):
        recomputed_epsilon([gaussian(1.0, q=0.5)], 1e-6, Adjacency.REPLACE)
