"""All noise is drawn here: exact laws over the integers, vectorised, without floating point.

The proof that each sampler follows its law exactly, tails included, is in `noise.md`.

    discrete Laplace    P[x] ∝ exp(−|x| / scale)            its binary digits are independent coins
    a part of it        the sum of the parts is the above   cycles of a permutation, some kept
    discrete Gaussian   P[x] ∝ exp(−x² / (2 variance))      rejection from the discrete Laplace
    coins, choices      probabilities p, exp(−k·rate)        lazily compared binary digits
    packed coins        eight to a byte, probability p       the same, a digit of all at a time

Lengths are in steps of a `Grid`. The one continuous law, `l2_laplace`, is idealised: it is drawn in
double precision, and certificates say so.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Sequence
from fractions import Fraction
from functools import lru_cache
from itertools import accumulate
from math import isqrt
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tacit.crypto.prg import SYSTEM, Keystream, Randomness
from tacit.errors import PromiseError
from tacit.privacy.exact import Probability, exp_of_minus, logistic_of_minus

__all__ = [
    "bernoulli",
    "bernoulli_bits",
    "bernoulli_exp",
    "check_scale",
    "choose_exp",
    "discrete_gaussian",
    "discrete_laplace",
    "discrete_laplace_part",
    "l2_laplace",
    "permutation",
    "substitute",
    "uniform_below",
]

Integers = NDArray[np.int64]
Flags = NDArray[np.bool_]
Octets = NDArray[np.uint8]

LARGEST_SCALE = 2**50  # beyond it a draw could leave 63 bits
SMALLEST_SCALE = Fraction(1, 2**20)  # below it a draw is 0, and the grid far too coarse
CHUNK = 4096  # draws at a time: their random words stay in the cache
TAIL = 45  # exp(−45) < 2^−64: how far the table of digits reaches before the tail coin takes over
LEVEL = 64  # random bits per further look at an undecided comparison
DIGITS = 8  # of a probability looked at for all packed coins, unless a few more end it
LAST_DIGIT = 16  # a probability that ends here is looked at as a whole
PACKED = 1 << 15  # bytes of packed coins at a time
PEOPLE = 1 << 16  # substituted at a time


# ── coins ────────────────────────────────────────────────────────────────────────────────────────


def bernoulli(probability: Fraction, size: int, randomness: Randomness = SYSTEM) -> Flags:
    """Independent coins, each heads with exactly this probability."""
    return _coins(randomness.stream(), Probability.rational(probability), size)


def bernoulli_exp(steps: Integers, rate: Fraction, randomness: Randomness = SYSTEM) -> Flags:
    """Coins with probability exp(−steps · rate): one coin for each binary digit of `steps`."""
    stream = randomness.stream()
    heads = np.ones(len(steps), dtype=np.bool_)
    for digit in reversed(range(int(steps.max(initial=0)).bit_length())):
        tossed = np.flatnonzero(heads & (steps >> digit & 1).astype(np.bool_))
        if tossed.size:
            heads[tossed] = _coins(stream, _exp_coin(rate * 2**digit), tossed.size)
    return heads


@lru_cache(maxsize=1024)
def _exp_coin(exponent: Fraction) -> Probability:
    return Probability.exp(exponent)


def _coins(stream: Keystream, probability: Probability, size: int) -> Flags:
    words = stream.words(size, np.uint16)
    threshold = probability.prefix(16)
    heads = words < threshold
    ties = np.flatnonzero(words == threshold)
    heads[ties] = [_settle(stream, probability, threshold, 16) for _ in ties]
    return heads


def _settle(stream: Keystream, probability: Probability, prefix: int, bits: int) -> bool:
    """Whether a uniform number whose first `bits` digits are `prefix` is below the probability."""
    while prefix == (known := probability.prefix(bits)):
        prefix = prefix << LEVEL | stream.integer(LEVEL)
        bits += LEVEL
    return prefix < known


# ── packed coins ─────────────────────────────────────────────────────────────────────────────────


def bernoulli_bits(
    probability: Fraction, rows: int, width: int, randomness: Randomness = SYSTEM
) -> Octets:
    """Rows of `width` independent coins, packed: coin i is bit i mod 8 of byte i div 8.

    The bits beyond `width` are 0. Cheapest for probabilities that end after few binary digits
    (noise.md, lemma 6).
    """
    if not 0 <= probability < 1:
        raise PromiseError(f"packed coins have a probability in [0, 1), not {probability}.")
    stream, coin = randomness.stream(), Probability.rational(probability)
    tail = probability.denominator
    ends = tail & (tail - 1) == 0 and tail <= 1 << LAST_DIGIT
    digits = max(1, tail.bit_length() - 1) if ends else DIGITS
    packed = np.empty((rows, -(-width // 8)), dtype=np.uint8)
    flat = packed.reshape(-1)
    for start in range(0, flat.size, PACKED):
        piece = flat[start : start + PACKED]
        words = stream.words(digits * piece.size, np.uint8).reshape(digits, -1)
        piece[:] = _less(words, coin.prefix(digits))
        if not ends:
            _break_ties(stream, coin, digits, piece, _equal(words, coin.prefix(digits)))
    if width % 8:
        packed[:, -1] &= (1 << width % 8) - 1
    return packed


def _less(words: Octets, prefix: int) -> Octets:
    """[u < prefix] in every bit; `words` are the digits of u, inverted, the last digit first.

    From the last digit on: where the prefix has a 1, u is less if it has a 0 or was less so far;
    where the prefix has a 0, if it has a 0 and was less so far.
    """
    less: Octets = np.zeros_like(words[0])
    for digit, word in enumerate(words):
        merge = np.bitwise_or if prefix >> digit & 1 else np.bitwise_and
        merge(less, word, out=less)
    return less


def _equal(words: Octets, prefix: int) -> Octets:
    """[u = prefix] in every bit."""
    equal: Octets = np.full_like(words[0], 255)
    for digit, word in enumerate(words):
        equal &= ~word if prefix >> digit & 1 else word
    return equal


def _break_ties(
    stream: Keystream, coin: Probability, digits: int, heads: Octets, ties: Octets
) -> None:
    """Toss the coins whose first digits are the probability's own, with what is left of it."""
    where = np.flatnonzero(ties != 0)
    tied = np.unpackbits(ties[where]).view(np.bool_)
    places = np.flatnonzero(tied)
    words, threshold = stream.words(places.size, np.uint16), coin.digits(digits, 16)
    tied[places] = words < threshold
    for place in places[words == threshold]:
        tied[place] = _settle(stream, coin, coin.prefix(digits + 16), digits + 16)
    heads[where] |= np.packbits(tied)


# ── discrete Laplace ─────────────────────────────────────────────────────────────────────────────


def discrete_laplace(scale: Fraction, size: int, randomness: Randomness = SYSTEM) -> Integers:
    """`size` independent draws with P[x] ∝ exp(−|x| / scale)."""
    check_scale(scale)
    stream, digits = randomness.stream(), _digits(scale)
    return _collect(size, lambda count: _signed(stream, _geometric(stream, digits, count)))


class _Digits:
    """The independent coins that are the binary digits of a geometric number.

    P[g] ∝ exp(−g/scale) factorises over the digits of g: digit i is one with probability
    1/(1 + exp(2^i/scale)). Digits from `width` on are counted together, by repeated tail coins.
    """

    def __init__(self, scale: Fraction) -> None:
        self.width = -(-int(TAIL * scale + 1).bit_length() // 8) * 8  # whole bytes, for packbits
        self.coins = [logistic_of_minus(2**i / scale) for i in range(self.width)]
        thresholds = np.array([coin.prefix(16) for coin in self.coins], dtype=np.uint16)
        self.thresholds = np.tile(thresholds, CHUNK)
        self.tail = Probability.exp(2**self.width / scale)


@lru_cache(maxsize=64)
def _digits(scale: Fraction) -> _Digits:
    return _Digits(scale)


def _geometric(stream: Keystream, digits: _Digits, count: int) -> Integers:
    words = stream.words(count * digits.width, np.uint16)
    thresholds = digits.thresholds[: words.size]
    ones = words < thresholds
    for tie in np.flatnonzero(words == thresholds):
        coin = digits.coins[tie % digits.width]
        ones[tie] = _settle(stream, coin, int(thresholds[tie]), 16)
    octets = np.zeros((count, 8), dtype=np.uint8)
    octets[:, : digits.width // 8] = np.packbits(ones, bitorder="little").reshape(count, -1)
    drawn: Integers = octets.view("<i8").ravel()
    beyond = np.flatnonzero(_coins(stream, digits.tail, count))
    while beyond.size:
        drawn[beyond] += 1 << digits.width
        beyond = beyond[_coins(stream, digits.tail, beyond.size)]
    return drawn


def _signed(stream: Keystream, magnitudes: Integers) -> Integers:
    """Random signs. Minus zero is rejected, so that zero is not drawn twice as often."""
    negative = stream.words(len(magnitudes), np.uint8) & 1 == 1
    signed: Integers = np.where(negative, -magnitudes, magnitudes)
    kept: Integers = signed[~(negative & (magnitudes == 0))]
    return kept


def _collect(size: int, propose: Callable[[int], Integers]) -> Integers:
    """The first `size` accepted proposals: rejection sampling in chunks."""
    drawn = np.empty(size, dtype=np.int64)
    filled = 0
    while filled < size:
        wanted = size - filled
        accepted = propose(min(CHUNK, wanted + wanted // 2 + 16))[:wanted]
        drawn[filled : filled + len(accepted)] = accepted
        filled += len(accepted)
    return drawn


def check_scale(scale: Fraction, power: int = 1) -> None:
    """Refuse what the integers cannot hold; a variance is a scale to the power of two."""
    if not SMALLEST_SCALE**power <= scale <= LARGEST_SCALE**power:
        raise PromiseError(
            f"a noise scale lies between 2^-20 and 2^50 grid steps; given was "
            f"{float(scale):g}{' for its square' if power == 2 else ''}. Take a "
            f"{'larger' if scale > 1 else 'smaller'} epsilon, or another grid."
        )


# ── discrete Laplace in parts ────────────────────────────────────────────────────────────────────


def discrete_laplace_part(
    scale: Fraction, parts: int, size: int, randomness: Randomness = SYSTEM
) -> Integers:
    """Draws that `parts` servers make on their own, so that their sum has P[x] ∝ exp(−|x| / scale).

    Each is the difference of two negative binomials of shape 1/parts (noise.md, lemma 5).
    """
    check_scale(scale)
    if parts < 1:
        raise PromiseError(f"noise has at least one part, not {parts}.")
    stream, digits = randomness.stream(), _digits(scale)
    share = Probability.rational(Fraction(1, parts))

    def side(count: int) -> Integers:
        return _kept_cycles(stream, _geometric(stream, digits, count), share)

    return _collect(size, lambda count: side(count) - side(count))


def _kept_cycles(stream: Keystream, totals: Integers, share: Probability) -> Integers:
    """How many things lie in the kept cycles of a random permutation of `totals` things.

    Each cycle is kept with probability `share`. If `totals` is geometric, the result is negative
    binomial of shape `share` with the same ratio. Some ln(total) cycles are drawn one by one.
    """
    kept = np.zeros(len(totals), dtype=np.int64)
    places = np.flatnonzero(totals)
    left = totals[places].astype(np.uint64)
    while places.size:
        # The cycle of the first thing left has a length that is uniform from 1 to all that is left.
        words = stream.words(places.size, np.uint64)
        lengths = words % left
        whole = words - lengths <= -left  # 2^64 − left: the last, incomplete run of words is unfair
        lengths = np.where(whole, lengths + np.uint64(1), np.uint64(0))  # 0: draw this one again
        kept[places] += (lengths * _coins(stream, share, places.size)).astype(np.int64)
        left = left - lengths
        open_ = left > 0
        places, left = places[open_], left[open_]
    return kept


# ── discrete Gaussian ────────────────────────────────────────────────────────────────────────────


def discrete_gaussian(variance: Fraction, size: int, randomness: Randomness = SYSTEM) -> Integers:
    """`size` independent draws with P[x] ∝ exp(−x² / (2 variance)).

    Rejection from the discrete Laplace of scale t = ⌊√variance⌋ + 1, accepting y with probability
    exp(−(|y| − variance/t)² / (2 variance)) (Canonne, Kamath, Steinke 2020, algorithm 3).
    """
    acceptance = _acceptance(variance)
    stream, digits = randomness.stream(), _digits(Fraction(acceptance.t))

    def propose(count: int) -> Integers:
        magnitudes = _geometric(stream, digits, count)
        return _signed(stream, magnitudes[acceptance.decide(stream, magnitudes)])

    return _collect(size, propose)


GAMMA_BITS = 20  # fractional binary digits of the exponent γ
UNIT_BITS = 31  # binary digits of probabilities and of the uniform numbers they are compared with
GAMMA_LIMIT = 64 << GAMMA_BITS  # exp(−64) vanishes in 31 digits


class _Acceptance:
    """Decides by bounds in 64-bit integers; the one in a million that they leave open, exactly."""

    def __init__(self, variance: Fraction) -> None:
        self.variance = variance
        self.t = isqrt(int(variance)) + 1
        # Lengths are measured with 2^shift · √variance ≈ 2^24, so that squares fit 64 bits.
        self.shift = 24 - (isqrt(int(variance * 2**40)).bit_length() - 20)
        unit = Fraction(2) ** self.shift
        self.centre = int(variance / self.t * unit)
        self.divisor = int(2 * variance * unit * unit) >> GAMMA_BITS
        self.farthest = int(2**30 / unit)

    def decide(self, stream: Keystream, magnitudes: Integers) -> Flags:
        low, high = self.bounds(magnitudes)
        uniform = (stream.words(len(magnitudes), np.uint32) >> 1).astype(np.uint64)
        accepted = uniform < low
        for index in np.flatnonzero(~accepted & (uniform < high)):
            exact = Probability.exp(self.gamma(int(magnitudes[index])))
            accepted[index] = _settle(stream, exact, int(uniform[index]), UNIT_BITS)
        return accepted

    def gamma(self, magnitude: int) -> Fraction:
        return (magnitude - self.variance / self.t) ** 2 / (2 * self.variance)

    def bounds(self, magnitudes: Integers) -> tuple[NDArray[np.uint64], NDArray[np.uint64]]:
        """low ≤ 2^31 · exp(−γ) ≤ high for every magnitude (noise.md, lemma 4)."""
        capped = np.minimum(magnitudes, self.farthest)
        scaled = capped << self.shift if self.shift >= 0 else capped >> -self.shift
        distance = np.abs(scaled - self.centre)
        nearest = np.maximum(distance - 1, 0).astype(np.uint64)
        farthest = (distance + 1).astype(np.uint64)
        gamma_low = nearest * nearest // np.uint64(self.divisor + 1)
        gamma_high = farthest * farthest // np.uint64(self.divisor) + np.uint64(1)
        low = _exp_floor(gamma_high)
        low[magnitudes > self.farthest] = 0
        return low, _exp_floor(gamma_low) + np.uint64(6)


@lru_cache(maxsize=256)
def _acceptance(variance: Fraction) -> _Acceptance:
    check_scale(variance, power=2)
    return _Acceptance(variance)


def _exp_floor(gamma: NDArray[np.uint64]) -> NDArray[np.uint64]:
    """At most 2^31 · exp(−γ), and less than 6 below it; γ in units of 2^−20."""
    coarse, middle, fine = _exp_tables()
    gamma = np.minimum(gamma, np.uint64(GAMMA_LIMIT - 1))
    product: NDArray[np.uint64] = coarse[gamma >> np.uint64(18)]
    product *= middle[gamma >> np.uint64(9) & np.uint64(511)]
    product >>= np.uint64(UNIT_BITS)
    product *= fine[gamma & np.uint64(511)]
    product >>= np.uint64(UNIT_BITS)
    return product


@lru_cache(maxsize=1)
def _exp_tables() -> tuple[NDArray[np.uint64], ...]:
    """floor(2^31 · exp(−j · 2^−k)) for the three groups of binary digits of γ."""
    groups = ((256, 2), (512, 11), (512, 20))
    return tuple(
        np.array(
            [Probability.exp(Fraction(j, 2**k)).prefix(UNIT_BITS) for j in range(n)],
            dtype=np.uint64,
        )
        for n, k in groups
    )


# ── choices ──────────────────────────────────────────────────────────────────────────────────────


def uniform_below(limit: int, size: int, randomness: Randomness = SYSTEM) -> Integers:
    """Independent uniform integers in [0, limit)."""
    return _below(randomness.stream(), limit, size).astype(np.int64)


def substitute(
    values: Integers, limit: int, kept: Fraction, randomness: Randomness = SYSTEM
) -> NDArray[np.unsignedinteger[Any]]:
    """Each value with probability `kept`, else one of the others below `limit`, uniformly."""
    stream, coin = randomness.stream(), Probability.rational(kept)
    drawn = np.empty(len(values), dtype=np.min_scalar_type(limit - 1))
    for start in range(0, len(values), PEOPLE):
        piece = values[start : start + PEOPLE]
        moved = ~_coins(stream, coin, len(piece))
        shifted = _below(stream, limit - 1, len(piece))
        kind = shifted.dtype.type
        shifted += kind(1)
        shifted *= moved
        shifted += piece.astype(kind)
        shifted -= (shifted >= kind(limit)) * kind(limit)
        drawn[start : start + PEOPLE] = shifted
    return drawn


def _below(stream: Keystream, limit: int, size: int) -> NDArray[Any]:
    """Uniform integers in [0, limit) by multiplication (Lemire 2019; noise.md, lemma 7).

    Words have at least eight digits more than the limit, so that hardly any is drawn again.
    """
    if limit > 1 << 24:
        return _below_large(stream, limit, size)
    narrow: Any
    narrow, wide = (np.uint16, np.uint32) if limit <= 1 << 8 else (np.uint32, np.uint64)
    bits = 8 * np.dtype(narrow).itemsize
    products: NDArray[Any] = stream.words(size, narrow) * wide(limit)
    unfair = (1 << bits) % limit
    while unfair and (again := np.flatnonzero(products.astype(narrow) < unfair)).size:
        products[again] = stream.words(again.size, narrow) * wide(limit)
    return np.asarray((products >> wide(bits)).astype(narrow))


def _below_large(stream: Keystream, limit: int, size: int) -> NDArray[Any]:
    span = np.uint64(2**64 // limit * limit - 1)

    def propose(count: int) -> Integers:
        words = stream.words(count, np.uint64)
        return (words[words <= span] % np.uint64(limit)).astype(np.int64)

    return _collect(size, propose)


def permutation(size: int, randomness: Randomness = SYSTEM) -> Integers:
    """A uniformly random order (Fisher–Yates)."""
    stream = randomness.stream()
    order = np.arange(size)
    for i in range(size - 1, 0, -1):
        j = stream.below(i + 1)
        order[i], order[j] = order[j], order[i]
    return order


def choose_exp(
    weights: Sequence[int], steps: Sequence[int], rate: Fraction, randomness: Randomness = SYSTEM
) -> int:
    """An index i with P[i] ∝ weights[i] · exp(−steps[i] · rate), by exact inversion."""
    stream = randomness.stream()
    base = min(step for weight, step in zip(weights, steps, strict=True) if weight)
    uniform, bits, precision = stream.integer(128), 128, 192
    while True:
        low, high = _cumulative(weights, [max(0, s - base) for s in steps], rate, precision)
        # With C the sums and U the uniform number, we look for Cᵢ₋₁ ≤ U·C < Cᵢ. The right half is
        # certain if lowᵢ · 2^bits > (u + 1) · high, the left one if highᵢ₋₁ · 2^bits ≤ u · low.
        index = bisect_right(low, (uniform + 1) * high[-1] >> bits)
        if index < len(low) and (not index or high[index - 1] << bits <= uniform * low[-1]):
            return index
        uniform, bits, precision = (
            uniform << LEVEL | stream.integer(LEVEL),
            bits + LEVEL,
            2 * precision,
        )


def _cumulative(
    weights: Sequence[int], steps: Sequence[int], rate: Fraction, precision: int
) -> tuple[list[int], list[int]]:
    """Running sums of bounds on weights · exp(−steps · rate) · 2^precision."""
    near = precision / rate  # farther steps all have the bounds (0, 1); do not compute them singly
    known = {step: exp_of_minus(step * rate, precision) for step in set(steps) if step < near}
    bounds = [known.get(step, (0, 1)) for step in steps]
    low = accumulate(w * b[0] for w, b in zip(weights, bounds, strict=True))
    high = accumulate(w * b[1] for w, b in zip(weights, bounds, strict=True))
    return list(low), list(high)


# ── the one continuous law ───────────────────────────────────────────────────────────────────────


def l2_laplace(scale: float, length: int, randomness: Randomness = SYSTEM) -> NDArray[np.float64]:
    """A vector with density ∝ exp(−‖x‖₂ / scale): Gamma(length) radius, uniform direction.

    Double precision: the law is idealised (Mironov 2012 applies), which its certificate says.
    """
    from scipy.special import ndtri

    stream = randomness.stream()
    words = stream.words(2 * length, np.uint64).reshape(2, length)
    uniform = ((words >> np.uint64(11)).astype(np.float64) + 0.5) * 2.0**-53
    direction = ndtri(uniform[0])
    radius = -scale * np.log(uniform[1]).sum()  # a Gamma(length) is a sum of exponentials
    return np.asarray(radius * direction / np.linalg.norm(direction))
