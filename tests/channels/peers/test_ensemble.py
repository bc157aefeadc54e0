"""Votes: how they are counted, weighed, and what one saboteur can do to them."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
import pytest
from numpy.typing import NDArray

from tacit.channels.peers.ensemble import Ensemble, decided, tally, weight
from tacit.data.encode import Encoded
from tacit.errors import UsageError
from tacit.programs.averaging import AveragedLogistic, RootedLogisticModel
from tacit.programs.logistic import LogisticModel

Reals = NDArray[np.float64]
CLASSES = ("no", "yes")


@dataclass(frozen=True)
class Says:
    """A model that says the same of every record."""

    chance: float
    classes: tuple[str, ...] = field(default=CLASSES)

    def predict(self, X: Reals) -> NDArray[np.int64]:
        return np.full(len(X), int(self.chance > 0.5))

    def probabilities(self, X: Reals) -> Reals:
        return np.tile([1 - self.chance, self.chance], (len(X), 1))


ONE = np.zeros((1, 1))
YES, NO = Says(0.9), Says(0.2)


def said(ensemble: Ensemble) -> int:
    return int(ensemble.predict(ONE)[0])


# ── votes ──


def test_the_majority_decides() -> None:
    assert said(Ensemble([NO, NO, YES])) == 0
    assert said(Ensemble([NO, YES], own=YES)) == 1
    assert Ensemble([NO, NO, YES], own=YES).scores(ONE).tolist() == [[0.5, 0.5]]


def test_even_votes_go_by_the_published_models() -> None:
    assert said(Ensemble([YES], own=NO)) == 1
    assert said(Ensemble([NO], own=YES)) == 0
    # Two against two: the published ones are surer of yes, whatever one's own thinks.
    assert said(Ensemble([YES, NO, NO], own=YES)) == 0
    assert said(Ensemble([Says(0.99), Says(0.45), Says(0.45)], own=YES)) == 1


def test_an_ensemble_of_one() -> None:
    assert said(Ensemble([], own=NO)) == 0
    assert said(Ensemble([YES])) == 1


def test_weights_count() -> None:
    assert said(Ensemble([NO, NO, YES], weights=[1, 1, 3])) == 1
    scores = Ensemble([NO, NO, YES], weights=[1, 1, 2]).scores(ONE)
    assert scores.tolist() == [[0.5, 0.5]]
    assert said(Ensemble([NO, NO, YES], weights=[0, 0, 0])) == 0  # all alike


@pytest.mark.parametrize(
    ("models", "own", "weights", "words"),
    [
        ([], None, None, "needs a model"),
        ([YES, Says(0.1, ("a", "b"))], None, None, "same classes"),
        ([YES], None, [1.0, 1.0], "weights"),
        ([YES], NO, [1.0], "one's own"),
        ([YES], None, [-1.0], "at least 0"),
        ([YES], None, [float("inf")], "at least 0"),
    ],
)
def test_what_is_no_ensemble(
    models: list[Says], own: Says | None, weights: list[float] | None, words: str
) -> None:
    with pytest.raises(UsageError, match=words):
        Ensemble(models, own, weights)


def test_several_classes() -> None:
    votes = np.array([[0, 2], [1, 2], [2, 1], [2, 0]])
    shares = tally(votes, np.ones(4), 3)
    assert shares.tolist() == [[0.25, 0.25, 0.5], [0.25, 0.25, 0.5]]
    even = np.array([[0.4, 0.4, 0.2]])
    assert decided(even, np.array([[0.1, 0.2, 0.9]])).tolist() == [1]


# ── weights ──

TRUTH = np.array([0] * 40 + [1] * 26)


def noisy(truth: NDArray[np.int64], wrong: int) -> NDArray[np.int64]:
    """Right but for every so many."""
    flipped = truth.copy()
    flipped[::wrong] = 1 - flipped[::wrong]
    return flipped


def test_the_better_weighs_more() -> None:
    found = [weight(noisy(TRUTH, wrong), TRUTH, 2) for wrong in (3, 5, 10, 30)]
    assert found == sorted(found)
    assert found[0] < found[-1] / 10


def test_nothing_known_nothing_counts() -> None:
    assert weight(1 - TRUTH, TRUTH, 2) == 0
    good = weight(noisy(TRUTH, 8), TRUTH, 2)
    for constant in (0, 1):  # the first is right for most
        assert weight(np.full_like(TRUTH, constant), TRUTH, 2) < good / 500


def test_few_of_those_who_guess_have_a_vote() -> None:
    rng = np.random.default_rng(0)
    found = np.array([weight(rng.integers(0, 2, len(TRUTH)), TRUTH, 2) for _ in range(400)])
    good = weight(noisy(TRUTH, 8), TRUTH, 2)
    assert (found > 0).mean() < 0.5
    assert found.sum() < 40 * good  # four hundred of them


def test_without_records_published_models_weigh_alike() -> None:
    nothing = Encoded(np.zeros((0, 1)), np.zeros(0, dtype=np.int64), None)
    weighed = Ensemble([YES, NO, NO], own=YES).weighted(nothing)
    assert weighed.weights is not None
    assert len(set(weighed.weights[:3])) == 1
    assert weighed.weights[0] > weighed.weights[3]


def test_ones_own_is_judged_more_strictly() -> None:
    right = noisy(TRUTH, 10)
    assert 0 < weight(right, TRUTH, 2, doubt=2.0) < weight(right, TRUTH, 2)


def test_weights_need_labels() -> None:
    with pytest.raises(UsageError, match="labels"):
        Ensemble([YES]).weighted(Encoded(ONE, None, None))


# ── a saboteur among fifty, on made-up mail ──

WORDS = 30
PEERS, RECORDS, GROUP = 50, 66, 5


def mail(rng: np.random.Generator, count: int) -> Encoded:
    """Rates of words, most of them rare; a third of the words betray spam."""
    y = (rng.random(count) < 0.4).astype(np.int64)
    rates = np.full(WORDS, 0.03)
    lift = np.ones((2, WORDS))
    lift[1, :5], lift[0, 5:10] = 4.0, 4.0
    X = np.minimum(1.0, rng.gamma(0.5, 1.0, (count, WORDS)) * rates * lift[y])
    return Encoded(X, y, None)


def model(vector: Reals) -> RootedLogisticModel:
    return RootedLogisticModel(vector[None, :-1], vector[-1:], CLASSES)


@pytest.fixture(scope="module")
def network() -> tuple[list[RootedLogisticModel], list[Encoded], Encoded]:
    """Published averages of groups of five under noise, the peers' records, and unseen mail."""
    from tacit.programs.logistic_output import LogisticOutput

    rng = np.random.default_rng(1)
    records = [mail(rng, RECORDS) for _ in range(PEERS)]
    made = AveragedLogistic(0.05, records="rooted")
    vectors = []
    for own in records:
        roots = np.sqrt(own.X)
        unit = roots / np.linalg.norm(roots, axis=1, keepdims=True)
        features = np.column_stack([unit, np.full(RECORDS, 0.25)])
        assert own.y is not None
        vectors.append(LogisticOutput(made.penalty).train(features, own.y))
    groups = np.array(vectors).reshape(-1, GROUP, WORDS + 1).mean(axis=1)
    published = groups + rng.normal(0, 0.4, groups.shape)
    scaled = published * np.append(np.ones(WORDS), 0.25)
    return [model(row) for row in scaled], records, mail(rng, 2_000)


def accuracy(models: list[RootedLogisticModel], records: Encoded, unseen: Encoded) -> float:
    weighed = Ensemble(models).weighted(records)
    return float((weighed.predict(unseen.X) == unseen.y).mean())


@pytest.mark.parametrize("count", [1, 50])
@pytest.mark.parametrize("kind", ["random", "opposite", "always"])
def test_a_saboteur_costs_less_than_two_points(
    network: tuple[list[RootedLogisticModel], list[Encoded], Encoded], kind: str, count: int
) -> None:
    models, records, unseen = network
    rng = np.random.default_rng(2)
    garbage = []
    for place in range(count):
        honest = models[place % len(models)]
        flat = np.append(honest.coef[0], honest.intercept)
        if kind == "random":
            drawn = rng.normal(size=len(flat))
            flat = drawn * np.linalg.norm(flat) / np.linalg.norm(drawn)
        elif kind == "opposite":
            flat = -flat
        else:
            flat = np.append(np.zeros(WORDS), 1.0)
        garbage.append(model(flat))
    before = np.mean([accuracy(models, own, unseen) for own in records[:10]])
    after = np.mean([accuracy(models + garbage, own, unseen) for own in records[:10]])
    assert before > 0.8
    assert before - after < 0.02
    if count == 50:  # and without weights it would have cost more
        plain = Ensemble(models + garbage).predict(unseen.X)
        assert before - (plain == unseen.y).mean() > 0.02


def test_models_of_several_kinds_vote_together() -> None:
    plain = LogisticModel(np.array([[1.0]]), np.array([0.0]), CLASSES)
    rooted = RootedLogisticModel(np.array([[1.0]]), np.array([0.0]), CLASSES)
    assert Ensemble([plain, rooted]).predict(np.array([[0.5]])).tolist() == [1]
