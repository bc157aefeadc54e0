"""How good a result can be, before anything is spent: from the plan's noise, and from no record.

The promise, the schema and the program fix the noise of every sum (levels.py). What it does to a
result depends on the data too, which nobody may look at: so each rule below asks what it would do
to a *typical* table, whose values spread over their bounds as SPREAD says and on which the program
without privacy does as TYPICAL says. A rule is right within a factor, not to the digit
(tests/programs/test_expected.py holds it against simulations); its use is to tell a promise that
leaves something from one that leaves nothing.

The number of records is private where adjacency is add-remove. Whoever asks here says a number of
his own, or has the records before him: what is told stays with him, and is in no certificate.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass
from typing import Any

import msgspec

from tacit.data.schema import Schema
from tacit.errors import UsageError
from tacit.privacy.bound import Norm
from tacit.privacy.promise import Promise
from tacit.programs.itemsets import FrequentItemsets
from tacit.programs.layout import owners
from tacit.programs.levels import Levels
from tacit.programs.mixture_em import STATISTICS
from tacit.programs.program import Plan, Program, norm_for

__all__ = ["SEARCHED", "Expectation", "ExpectedError", "Noise", "expected_error", "planned_noise"]

SPREAD = 0.3  # the standard deviation of a typical value, its bounds being −1 and 1
SEPARATION = 2.0  # of two typical classes, in standard deviations: 84 % can be told apart
FIT = 0.5  # R² of a typical regression without privacy
DIRECTION = 1 / 3  # of all variance: that of the first component of typical records
# Where bounds are not stated, a part of the promise finds them, and they fit less well: as if noise
# were so many times as large.
SEARCHED = 1.2
MOST_RECORDS = 10**12


@dataclass(frozen=True, slots=True)
class Noise:
    """Of one block of a plan: the standard deviation on each of `length` sums, in each of `count`
    rounds; one unit moves the sums by at most `bound`."""

    deviation: float
    length: int
    count: int
    bound: float


@dataclass(frozen=True, slots=True)
class Expectation:
    """What a rule says: a number that people understand, and how much of what is possible without
    privacy is left: 1 is all of it, 0 is what a guess has too."""

    value: float
    kept: float


@dataclass(frozen=True, slots=True)
class ExpectedError:
    """What to expect of a result under a promise, on a typical table.

    records    how many it is asked for
    value      see `measure`
    measure    what `value` is, in words
    kept       the share of what is possible without privacy, above what a guess has: 0 to 1
    useless    whether the result will hardly be better than `trivial`
    trivial    what needs no records at all: the likeliest class, the mean, …
    needed_n   from how many records on it is better than that; None if not even 10^12 are enough
    """

    program: str
    records: int
    value: float
    measure: str
    kept: float
    useless: bool
    trivial: str
    needed_n: int | None

    def __str__(self) -> str:
        text = f"Expected with {self.records:,} records: {self.measure} {self.value:.2g}"
        if not self.useless:
            return f"{text}; {self.kept:.0%} of what is possible without privacy."
        if self.needed_n is None:
            return f"{text}: no better than {self.trivial}, with however many records."
        return (
            f"{text}: hardly better than {self.trivial}. From about {_rounded(self.needed_n):,} "
            "records on it would be."
        )

    def to_dict(self) -> dict[str, Any]:
        return asdict(self)


@dataclass(frozen=True, slots=True)
class _Asked:
    """What a rule may know: nothing of this is private.

    first   the program's state before any data
    width   of a vector
    """

    program: Program[Any, Any]
    first: Any
    schema: Schema
    promise: Promise
    width: int
    columns: int
    noise: Mapping[str, Noise]

    @property
    def only(self) -> Noise:
        return next(iter(self.noise.values()))


def planned_noise(levels: Levels, factor: float = 1.0) -> dict[str, Noise]:
    """The noise of each block of a plan; `factor` is how many times as much a channel adds."""
    found = {}
    for stage in levels.plan.stages:
        for block in stage.query.blocks:
            # The variance of Laplace noise of scale b is 2 b².
            shape = math.sqrt(2) if block.norm is Norm.L1 else 1.0
            deviation = factor * shape * float(levels.mechanism(block).scale)
            deviation /= float(stage.sampling)  # sums of samples are scaled up, and noise with them
            found[block.name] = Noise(deviation, block.length, stage.count, float(block.bound))
    return found


def expected_error(
    program: Program[Any, Any],
    schema: Schema,
    promise: Promise,
    records: int,
    *,
    factor: float = 1.0,
    levels: Levels | None = None,
) -> ExpectedError:
    """What to expect of a program's result for so many records, on a typical table.

    factor   how many times as much noise there is as in one trusted place
    levels   the noise of a plan, if it is known already
    """
    if not _is_size(records):
        raise UsageError(f"records = {records}: say how many there will be, a whole number.")
    rule = _RULES.get(program.name, _OTHER)
    words = rule.measure, rule.trivial
    if not promise.is_private:
        return _said(program, records, Expectation(rule.best, 1.0), words, False, 1)
    stated = _with_bounds(schema)
    if stated is not schema:
        schema, factor = stated, factor * SEARCHED
    first = program.init(schema, promise)
    if levels is None:
        levels = Levels.planned(promise, Plan(tuple(program.plan(first))))
    owner = owners(schema)
    asked = _Asked(
        program, first, schema, promise, len(owner), len(schema.features),
        planned_noise(levels, factor),
    )  # fmt: skip
    found = rule.expect(asked, records)
    useless = found.kept < rule.least
    needed = _needed(rule, asked, records) if useless else _needed(rule, asked, 1)
    return _said(program, records, found, words, useless, needed)


def _with_bounds(schema: Schema) -> Schema:
    """The schema with bounds for numbers that have none yet; which ones makes no difference."""
    columns = tuple(
        msgspec.structs.replace(column, bounds=(-1.0, 1.0))
        if column.is_number and column.edges is None and not isinstance(column.bounds, tuple)
        else column
        for column in schema.columns
    )
    if columns == schema.columns:
        return schema
    return msgspec.structs.replace(schema, columns=columns)


def _said(
    program: Program[Any, Any],
    records: int,
    found: Expectation,
    words: tuple[str, str],
    useless: bool,
    needed: int | None,
) -> ExpectedError:
    measure, trivial = words
    kept = min(max(found.kept, 0.0), 1.0)
    return ExpectedError(
        program.name, records, found.value, measure, kept, useless, trivial, needed
    )


def _needed(rule: _Rule, asked: _Asked, low: int) -> int | None:
    """The least number of records that leaves something: every rule rises with them."""
    if rule.expect(asked, low).kept >= rule.least:
        return low
    high = low
    while rule.expect(asked, high).kept < rule.least:
        low, high = high, high * 2
        if high > MOST_RECORDS:
            return None
    while high - low > 1:
        middle = (low + high) // 2
        enough = rule.expect(asked, middle).kept >= rule.least
        low, high = (low, middle) if enough else (middle, high)
    return high


def _rounded(number: int) -> int:
    """To two digits, upwards: the rule knows no more."""
    unit = int(10 ** max(0, len(str(number)) - 2))
    return -(-number // unit) * unit


# ── what noise does, program by program ──


def _logistic(asked: _Asked, records: int) -> Expectation:
    """Gradients of all rounds add up: so does their noise, less than they do. Weights that point
    off the truth by an angle θ tell classes apart as if these were cos θ as far from each other."""
    gradient = asked.noise["gradient"]
    encoding, length = asked.first.encoding, float(gradient.length)
    if encoding is not None:  # short coordinates bring less noise into a score
        length *= encoding.effective / encoding.width
    whole = gradient.deviation / gradient.bound * math.sqrt(length / gradient.count)
    off = 10.0 * whole / records  # a mean gradient is about a tenth of its clip
    return _told_apart(SEPARATION / 2 / math.hypot(1.0, off))


def _naive_bayes(asked: _Asked, records: int) -> Expectation:
    """Noise on means turns the border between two classes, noise on variances bends it."""
    classes = int(asked.first.classes)
    numbers, each = len(asked.first.numbers), asked.only.deviation * classes / records
    mean, variance = each / SPREAD, each / SPREAD**2
    # A count of a value that half of the records have: its log-odds are off by this.
    value = 2.0 * each
    others = asked.columns - numbers
    off = numbers * (2 * mean**2 + variance**2) + others * 2 * value**2
    return _told_apart(SEPARATION**2 / 2 / math.sqrt(SEPARATION**2 + off))


def _told_apart(distance: float) -> Expectation:
    """Of two classes that lie `distance` deviations from the border: the accuracy, and how much of
    it is more than a guess."""
    right, best = _normal(distance), _normal(SEPARATION / 2)
    return Expectation(right, (right - 0.5) / (best - 0.5))


def _linear(asked: _Asked, records: int) -> Expectation:
    """Directions that do not rise above the noise are shrunk; noise on the products with the label
    and on the second moments, divided by these, is the error of the coefficients. All in units of
    a coordinate's own variance."""
    width, noise = asked.width, _noise_on_products(asked, records)
    floor = max(records, 2.0 * noise * (math.sqrt(width) + 1.0))
    kept, weight = records / floor, asked.first.moments.weight
    moved = noise * kept * math.sqrt(FIT)  # what noise on second moments does to the coefficients
    loss = width * ((noise / weight) ** 2 + moved**2) / floor**2
    middle = (noise / weight**2 / records) ** 2
    fit = FIT * (1 - (1 - kept) ** 2) - loss - middle
    return Expectation(max(fit, -9.9), fit / FIT)


def _pca(asked: _Asked, records: int) -> Expectation:
    """Symmetric noise turns the first direction (Benaych-Georges & Nadakuditi 2011): of its squared
    length, d σ² / (n λ)² is lost, and all of it where that is 1 or more."""
    strength = records * max(1.0, asked.width * DIRECTION)
    seen = max(0.0, 1 - asked.width * (_noise_on_products(asked, records) / strength) ** 2)
    return Expectation(seen, seen)


def _noise_on_products(asked: _Asked, records: int) -> float:
    """Its deviation on a sum of products of two coordinates, whose variances are 1."""
    moments, noise = asked.first.moments, asked.noise["moments"].deviation
    boxed = moments.box / SPREAD**2
    return noise * float(boxed if moments.boxed else moments.longest(noise, records))


def _kmeans(asked: _Asked, records: int) -> Expectation:
    """Noise on a centre adds its square to each record's squared distance, but a record takes the
    nearest of all centres, wherever they are: the more of them, the less noise matters."""
    clusters = len(asked.first.centres)
    sums, counts = asked.noise["sums"].deviation, asked.noise["counts"].deviation
    each = clusters / records
    noise = min(1 / 3, (each * sums) ** 2 + (each * counts * SPREAD) ** 2) / SPREAD**2
    fill = clusters ** (-2 / asked.width)  # a ball's share of the space of its neighbours, squared
    own = min(0.6, 1.2 * fill)
    share = min(own + noise, (1 + noise) * math.gamma(1 + 2 / asked.width) * fill)
    # Counts that drown in their noise leave the centres where they began.
    counted = 1 / (2 * each * counts)
    return Expectation(max(share, own) / own, min((1 - share) / (1 - own), counted))


def _mixture(asked: _Asked, records: int) -> Expectation:
    """A component sees records from its centre in its own deviations, as far as it reaches: noise
    on its covariance matrix is to stay below that matrix."""
    kind, components = asked.first.kind, len(asked.first.weights)
    reach = math.sqrt(asked.width) + 2.0
    spectral = math.sqrt(asked.width / 2) if kind == "full" else 1.0
    noise = asked.noise[STATISTICS].deviation / records
    off = max(noise * spectral * reach**2, 4.0 * noise * components)
    return Expectation(off, 1 - off)


def _itemsets(asked: _Asked, records: int) -> Expectation:
    """A record with many items counts for less in each (holds.py). Below three deviations a support
    is noise."""
    assert isinstance(asked.program, FrequentItemsets)  # the rule is that program's
    norm = norm_for(asked.promise)
    items = asked.first.longest + 1
    each = asked.only.deviation * (items if norm is Norm.L1 else math.sqrt(items))
    support = 3.0 * each / records
    return Expectation(support, 1 - support / asked.program.minsup)


def _histogram(asked: _Asked, records: int) -> Expectation:
    """Against a cell that has its equal part of the records."""
    worst = max(noise.deviation * noise.length for noise in asked.noise.values()) / records
    return Expectation(worst, 1 - worst)


def _quantiles(asked: _Asked, records: int) -> Expectation:
    """A rank is the sum of a few intervals of each level."""
    worst = max(noise.deviation * noise.bound for noise in asked.noise.values()) / records
    return Expectation(worst, 1 - 4 * worst)


def _other(asked: _Asked, records: int) -> Expectation:
    """Of any other program: its noise against the largest sum that so many records can have."""
    worst = max(
        noise.deviation * math.sqrt(noise.length / noise.count) / noise.bound
        for noise in asked.noise.values()
    )
    return Expectation(worst / records, 1 - worst / records)


def _normal(x: float) -> float:
    return (1 + math.erf(x / math.sqrt(2))) / 2


@dataclass(frozen=True, slots=True)
class _Rule:
    """least: of `kept`, below which a result is useless; best: the value without privacy."""

    expect: Callable[[_Asked, int], Expectation]
    measure: str
    trivial: str
    least: float
    best: float


_CLASSES = (
    "accuracy, where two equally common classes could be told apart with 0.84 without privacy:",
    "saying always the commonest class",
)
_RULES = {
    "logistic": _Rule(_logistic, *_CLASSES, 0.35, _normal(SEPARATION / 2)),
    "naive-bayes": _Rule(_naive_bayes, *_CLASSES, 0.35, _normal(SEPARATION / 2)),
    "linear-regression": _Rule(
        _linear,
        f"R², where {FIT:g} is possible without privacy:",
        "saying always the mean",
        0.2,
        FIT,
    ),
    "pca": _Rule(
        _pca,
        "share of the first component that is found, where it has a third of the variance:",
        "any direction",
        0.4,
        1.0,
    ),
    "k-means": _Rule(
        _kmeans, "inertia, relative to that without privacy:", "one centre at the mean", 0.4, 1.0
    ),
    "gaussian-mixture": _Rule(
        _mixture, "noise on a covariance, relative to it:", "a uniform density", 0.25, 0.0
    ),
    "frequent-itemsets": _Rule(
        _itemsets, "least support that can be told from noise:", "listing nothing", 0.0, 0.0
    ),
    "histogram": _Rule(
        _histogram,
        "standard error of a count, relative to a cell's equal part:",
        "equal cells",
        0.0,
        0.0,
    ),
    "quantiles": _Rule(
        _quantiles, "standard error of a rank, as a share of the records:", "equal cells", 0.0, 0.0
    ),
}  # fmt: skip
_OTHER = _Rule(
    _other, "noise of the sums, relative to the largest ones possible:", "a guess", 0.5, 0.0
)


def _is_size(given: object) -> bool:
    """A whole number of records, at least 1."""
    if isinstance(given, bool) or not isinstance(given, (int, float)):
        return False
    return given >= 1 and math.isfinite(given) and given == math.floor(given)
