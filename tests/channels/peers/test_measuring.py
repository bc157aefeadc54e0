"""What a network is worth: what one record can change, what arrives broken, what follows."""

from __future__ import annotations

import itertools
import json
import math
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

sys.path.insert(0, str(Path(__file__).parent))

from small_network import pact_of

from tacit.channels.peers import measuring
from tacit.channels.peers.ensemble import Ensemble
from tacit.channels.peers.measuring import MeasurePlan, measured
from tacit.channels.peers.worth import MEASURED, Worth, read_worth, shares
from tacit.crypto.prg import SeededRandomness
from tacit.data.encode import Encoded
from tacit.errors import InputError, Refused, UsageError
from tacit.privacy import accounting
from tacit.privacy.promise import Adjacency, Promise, Unit

Reals = NDArray[np.float64]
PACT = pact_of()
CLASSES = ("false", "true")
PLAIN = Promise(1.0)
PURE = 1e3  # an ε under which noise is hardly ever anything but 0: once in e^100


@dataclass(frozen=True)
class Line:
    """Says yes above its threshold of the first feature."""

    threshold: float
    classes: tuple[str, ...] = CLASSES

    def predict(self, X: Reals) -> NDArray[np.int64]:
        return (X[:, 0] > self.threshold).astype(np.int64)

    def probabilities(self, X: Reals) -> Reals:
        yes = self.predict(X)
        return np.column_stack([1.0 - yes, yes])


class Broken(Line):
    """Of another version's making."""

    def predict(self, X: Reals) -> NDArray[np.int64]:
        raise ValueError("no such feature")

    def probabilities(self, X: Reals) -> Reals:
        return np.full((len(X), 2), np.nan)


class Moody(Line):
    """Fails where one record of a batch is not to its liking, and says far too much elsewhere."""

    def predict(self, X: Reals) -> NDArray[np.int64]:
        if (X[:, 0] > 0.5).any():
            raise RuntimeError("too high")
        return np.full(len(X), 10**6)


def table(rows: list[tuple[float, int]]) -> Encoded:
    X = np.array([[x, 0.5] for x, _ in rows]).reshape(-1, 2)
    return Encoded(X, np.array([y for _, y in rows], dtype=np.int64), None)


def drawn(count: int, seed: int = 0, skew: float = 0.0) -> Encoded:
    source = np.random.default_rng(seed)
    X = source.uniform(-1, 1, (count, 2))
    return Encoded(X, (X[:, 0] + source.normal(0, 0.3, count) + skew > 0).astype(np.int64), None)


def plan(models: int = 2, epsilon: float = PURE, smallest: int = 50, **terms: Any) -> MeasurePlan:
    return MeasurePlan(Promise(epsilon, **terms), models, 0.3, smallest)


# ── sensitivity, by going through all neighbours ──


POINTS = [(x, y) for x in (-0.5, 0.2, 0.9) for y in (0, 1)]
MODELS: dict[str, Any] = {"a": Line(0.0), "b": Line(0.5), "c": Line(-0.9)}


def moved(one: tuple[float, ...], other: tuple[float, ...]) -> float:
    return float(np.abs(np.subtract(one, other)).sum())


def exact(rows: list[tuple[float, int]], held: list[bool]) -> Worth:
    """Without noise, with these records held back."""
    before = measuring._held_back
    measuring._held_back = lambda count, share, randomness: np.array(held, dtype=bool)
    try:
        return measured(PACT, MODELS, table(rows), plan(3), 0, SeededRandomness("exact"))
    finally:
        measuring._held_back = before


def bounds(adjacency: Adjacency) -> tuple[float, float]:
    asked = plan(3, adjacency=adjacency)
    by_model = asked.by_model
    assert by_model is not None
    return float(by_model.bound.value), float(asked.table.bound.value)


def widest(pairs: list[tuple[Worth, Worth]]) -> tuple[float, float]:
    """The most that counts and cells move between neighbours whose network votes alike: cells are
    released after the counts, for the same weights of both."""
    return (
        max(moved(one.counts, other.counts) for one, other in pairs),
        max(moved(one.cells, other.cells) for one, other in pairs),
    )


@pytest.fixture(autouse=True)
def alike(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """In enumerations weights stay the same: they follow from the first release, which is given
    when the second one is judged."""
    if "enumerated" in request.node.name:
        monkeypatch.setattr(measuring, "shares", lambda *args: [1 / 3] * 3)


REST = [(-0.7, 0), (0.4, 1), (0.6, 1), (-0.1, 0)]


def judged(held: list[tuple[float, int]]) -> Worth:
    return exact([*REST, *held], [False] * len(REST) + [True] * len(held))


def test_enumerated_one_held_back_more_or_less() -> None:
    pairs = [
        (judged(list(others)), judged([*others, one]))
        for size in (0, 1, 2)
        for others in itertools.product(POINTS, repeat=size)
        for one in POINTS
    ]
    assert widest(pairs) == bounds(Adjacency.ADD_REMOVE) == (4, 1)


def test_enumerated_one_held_back_exchanged() -> None:
    pairs = [
        (judged([*others, one]), judged([*others, other]))
        for size in (0, 1)
        for others in itertools.product(POINTS, repeat=size)
        for one, other in itertools.product(POINTS, repeat=2)
    ]
    assert widest(pairs) == bounds(Adjacency.REPLACE) == (3, 2)


def test_enumerated_what_is_not_held_back_changes_nothing_of_the_network() -> None:
    """Claim 2: counts, all records and the network's errors are the same whatever the rest is."""
    held = [(0.2, 1), (0.2, 0), (-0.5, 0), (0.9, 1)]
    found = set()
    for rest in itertools.product(POINTS, repeat=3):
        one = exact([*rest, *held], [False] * 3 + [True] * 4)
        found.add((one.counts, sum(one.cells), one.cells[1] + one.cells[3]))
    assert len(found) == 1


def test_what_one_model_says_of_a_record_depends_on_that_record_alone() -> None:
    moody = measuring._Guarded(Moody(0.0))
    assert moody.predict(np.array([[0.9, 0.0], [-0.5, 0.0]])).tolist() == [-1, 10**6]
    assert moody.probabilities(np.array([[0.9, 0.0]])).shape == (1, 2)


# ── what it costs ──


@pytest.mark.parametrize("adjacency", list(Adjacency))
@pytest.mark.parametrize(("models", "smallest"), [(1, 50), (3, 50), (3, 5000), (40, 5000)])
def test_all_that_is_drawn_costs_epsilon(adjacency: Adjacency, models: int, smallest: int) -> None:
    asked = plan(models, 0.5, smallest, adjacency=adjacency)
    epsilons = [release.bound.value / release.scale for release in asked.spend]
    assert 0.4999 < float(sum(epsilons)) <= 0.5
    cost = accounting.SpendCost.of(asked.spend, adjacency)
    assert cost is not None


def test_models_are_told_apart_only_where_noise_lets_them() -> None:
    """By public numbers alone."""
    assert plan(1, 1.0, 10**6).by_model is None
    assert plan(10, 1.0, 50).by_model is None
    assert plan(10, 1.0, 5000).by_model is not None
    assert len(plan(10, 1.0, 50).spend) == 1


@pytest.mark.parametrize(
    ("promise", "models", "share", "error", "words"),
    [
        (Promise(1.0, unit=Unit.HOLDER), 1, 0.3, Refused, "not a whole holder"),
        (Promise(1.0, 1e-6), 1, 0.3, UsageError, "delta 0"),
        (Promise(math.inf), 1, 0.3, UsageError, "finite"),
        (PLAIN, 1, 0.9, UsageError, "hold back 0.05 to 0.5"),
        (PLAIN, 1, math.nan, UsageError, "hold back"),
        (PLAIN, 0, 0.3, UsageError, "no model has arrived"),
    ],
)
def test_what_cannot_be_measured(
    promise: Promise, models: int, share: float, error: type[Exception], words: str
) -> None:
    with pytest.raises(error, match=words):
        MeasurePlan(promise, models, share, 50)


def test_the_plan_is_for_the_models_at_hand() -> None:
    with pytest.raises(UsageError, match="planned for 2"):
        measured(PACT, {"a": Line(0.0)}, drawn(60), plan(2))


def test_a_share_is_held_back_by_secret_coins() -> None:
    held = [measuring._held_back(1000, 0.3, SeededRandomness(f"coin {i}")).mean() for i in range(5)]
    assert all(0.24 < one < 0.36 for one in held)  # four deviations
    assert len(set(held)) > 1


# ── hostile inputs ──


@pytest.mark.parametrize(
    "records",
    [
        table([]),
        table([(0.1, 1)]),
        table([(0.1, 1)] * 2),
        table([(0.1, 1)] * 40),  # one class, all the same
        table([(0.1, 0), (0.1, 1)] * 20),  # nothing to be learned
    ],
    ids=["none", "one", "two", "one class", "ties"],
)
@pytest.mark.parametrize("epsilon", [0.01, 1.0, PURE])
def test_tiny_and_degenerate_tables_end_well(records: Encoded, epsilon: float) -> None:
    for seed in range(6):
        models = {"a": Line(0.0), "b": Broken(0.0), "c": Moody(0.0)}
        asked = plan(3, epsilon)
        worth = measured(PACT, models, records, asked, 1, SeededRandomness(f"tiny {seed}"))
        assert worth.words
        assert json.loads(json.dumps(worth.document()))["verdict"] in {"better", "worse", "unknown"}
        weights = worth.weights(["a", "b", "c", "new"])
        assert weights is None or all(0 <= one < math.inf for one in weights)
        for one in (worth.own, worth.of_network):
            assert 0 <= one.value <= 1
            assert 0 < one.within < math.inf


def test_broken_models_are_wrong_and_have_no_vote() -> None:
    models = {"good": Line(0.0), "broken": Broken(0.0)}
    worth = measured(PACT, models, drawn(400), plan(2, smallest=400), 0, SeededRandomness("b"))
    assert worth.counts[2] == worth.counts[0]  # always wrong
    found = worth.weights(["good", "broken"])
    assert found is not None
    assert found[:2] == [1.0, 0.0]
    assert worth.of_network.value < 0.2  # the good one alone


# ── what follows ──


def made(cells: tuple[float, ...], scale: float = 1.0, **more: Any) -> Worth:
    given: dict[str, Any] = {
        "network": PACT.digest,
        "epsilon": 1.0,
        "adjacency": "add-remove",
        "share": 0.3,
        "classes": 2,
        "models": ("a",),
        "mine": 0,
        "counts": (),
        "counts_scale": 0.0,
        "cells": cells,
        "cells_scale": scale,
    }
    return Worth(**given | more)


def test_it_says_which_is_better() -> None:
    worse = made((500.0, 200.0, 20.0, 80.0))
    assert (worse.own.value, worse.of_network.value) == (100 / 800, 280 / 800)
    assert worse.difference.value == pytest.approx(180 / 800)
    assert worse.verdict == "worse"
    assert worse.own_odds > 100
    assert "your own records alone: 12 % wrong (± 3); the network: 35 % (± 4)" in worse.words[0]
    assert "the network is worse than your own records alone, by 22 points" in worse.words[1]
    better = made((500.0, 20.0, 200.0, 80.0))
    assert (better.verdict, better.own_odds < 0.01) == ("better", True)
    assert better.own_odds * worse.own_odds == pytest.approx(1)
    unknown = made((500.0, 100.0, 100.0, 80.0), mine=1)
    assert (unknown.verdict, unknown.own_odds) == ("unknown", 1)
    assert "which of the two is better cannot be told" in unknown.words[1]
    assert "1 of the 1 models measured learned from your records too" in unknown.words[2]


@pytest.mark.parametrize(
    "cells", [(0.0, 0.0, 0.0, 0.0), (-5.0, 3.0, 1.0, 2.0), (9.0, 0.0, 0.0, 0.0)]
)
def test_what_noise_hides_is_not_told(cells: tuple[float, ...]) -> None:
    worth = made(cells, 2.0)
    assert (worth.tells, worth.verdict, worth.weights(["a"])) == (False, "unknown", None)
    assert "too few records" in worth.words[0]
    assert "own" not in worth.document()


def test_intervals_cover() -> None:
    """Noise and sampling, 95 % each time: below 93 % of 2,000 by chance once in 10^4."""
    source = np.random.default_rng(5)
    for chances, size, scale in [
        ((0.75, 0.1, 0.05, 0.1), 60, 2.0),
        ((0.9, 0.02, 0.06, 0.02), 300, 1.0),
    ]:
        own, network = chances[2] + chances[3], chances[1] + chances[3]
        inside = np.zeros(3)
        for _ in range(2000):
            cells = source.multinomial(size, chances) + source.laplace(0, scale, 4)
            one = made(tuple(cells.tolist()), scale)
            truths = (own, network, network - own)
            found = (one.own, one.of_network, one.difference)
            inside += [e.low <= t <= e.high for e, t in zip(found, truths, strict=True)]
        assert (inside / 2000 > 0.93).all()


def test_noise_draws_models_together() -> None:
    counts = (1000.0, 100.0, 120.0, 110.0, 500.0)
    exactly, noisy = shares(counts, 0.1, 2, 4), shares(counts, 150.0, 2, 4)
    assert exactly[3] == pytest.approx(0, abs=1e-3)
    assert exactly[0] > exactly[2] > exactly[1]
    assert noisy == [0.25] * 4
    assert sum(exactly) == pytest.approx(1)
    assert shares((), 0.0, 2, 3) == [1 / 3] * 3
    assert shares((1000.0, 900.0, 800.0), 1.0, 2, 2) == [0.5, 0.5]  # nothing is worth anything


def test_what_came_later_weighs_as_the_mean() -> None:
    worth = made((70.0, 10.0, 10.0, 10.0), 0.1, models=("a", "b"))
    found = worth.weights(["a", "new", "b"])
    assert found is not None
    assert found[:3] == pytest.approx([1 / 3] * 3)
    assert made((70.0, 10.0, 10.0, 10.0), 0.1).weights([]) is None


@pytest.mark.parametrize(("good", "verdict"), [(True, "better"), (False, "worse")])
def test_the_better_one_decides(good: bool, verdict: str) -> None:
    """A fair and an opposite network, beside own records that say little or much."""
    records = drawn(1200, 3)
    if good:  # what is one's own is nearly unlearnable: labels of a third are turned round
        models: dict[str, Any] = {"a": Line(0.0)}
        pact = pact_of(chosen=type(PACT.chosen)(
            name="averaged-logistic", version=1, settings={"penalty": 0.1, "radius": 1e-9}
        ))  # fmt: skip
        records = drawn(1200, 3, skew=0.6)
        models = {"a": Line(-0.6)}
    else:
        pact, models = PACT, {"a": Line(2.0)}
    worth = measured(pact, models, records, plan(1, 1.0), 0, SeededRandomness("v"))
    assert worth.verdict == verdict
    weights = worth.weights(["a"])
    own = Line(9.0)
    said = Ensemble(list(models.values()), own, weights).predict(np.array([[0.5, 0.0]]))
    assert said.tolist() == [1 if good else 0]


# ── kept ──


def test_it_is_kept_and_read_and_what_is_damaged_is_refused(tmp_path: Path) -> None:
    assert read_worth(tmp_path / "nothing", PACT.digest) is None
    assert not (tmp_path / "nothing").exists()
    worth = made((70.0, 10.0, 10.0, 10.0))
    file = tmp_path / MEASURED
    file.write_text(json.dumps(worth.to_dict()))
    assert read_worth(tmp_path, PACT.digest) == worth
    assert read_worth(tmp_path, "another network") is None
    plain = worth.to_dict()
    for wrong in (
        "",
        "[]",
        json.dumps(plain | {"cells": [1.0]}),
        json.dumps(plain | {"cells": [math.inf, 0, 0, 0]}),
        json.dumps(plain | {"cells_scale": 0}),
        json.dumps(plain | {"counts": [1.0]}),
        json.dumps(plain | {"models": []}),
        json.dumps(plain | {"format": 2}),
        json.dumps(plain | {"more": 1}),
    ):
        file.write_text(wrong)
        with pytest.raises(InputError, match="measure"):
            read_worth(tmp_path, PACT.digest)
