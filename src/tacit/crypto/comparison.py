"""Which of two numbers is smaller, when neither side shows its own (semi-honest).

The asker owns a DGK key and has y; the answerer has x and a bit, `flip`. The asker learns
[x < y] xor flip, the answerer nothing. Many comparisons travel together:

    asker     begin   ──►   thermometers of the digits of y, encrypted
    answerer  answer  ──►   for each comparison as many ciphertexts as digits, and one: at most one
                            holds zero, all others hold random numbers, in random order
    asker     finish        is there a zero?

After Damgård, Geisler and Krøigaard (2007), with digits of two bits instead of bits: as many
ciphertexts in all, but only half of them are tested, and testing is what takes time. Why it is
right and what each side sees: comparison.md.
"""

from __future__ import annotations

import hashlib
import operator
from collections.abc import Sequence
from dataclasses import dataclass

from gmpy2 import mpz

from tacit.crypto.blind_permute import permuted, random_permutation
from tacit.crypto.dgk import PLAINTEXTS, PrivateKey, PublicKey
from tacit.crypto.prg import SYSTEM, Keystream, Randomness
from tacit.errors import InputError, UsageError

__all__ = [
    "WIDEST",
    "Cost",
    "answer",
    "answer_signs",
    "begin",
    "begin_signs",
    "cost",
    "finish",
    "finish_signs",
]

DIGIT_BITS = 2
STEPS = (1 << DIGIT_BITS) - 1  # ciphertexts of a digit: is it below 1, below 2, below 3?
WIDEST = 64  # bits: 32 digits, so that no number that is tested reaches PLAINTEXTS
TAG_BYTES = 32
SIGN_BIT = 31  # shares are modulo 2^32


@dataclass(frozen=True, slots=True)
class Cost:
    """What comparisons take: counts of the operations that matter, and bytes each way."""

    comparisons: int
    encryptions: int  # by the asker, a power modulo p and one modulo q each
    masks: int  # by the answerer, a power modulo n each
    zero_tests: int  # by the asker, a power modulo p each
    question_bytes: int
    answer_bytes: int


def cost(comparisons: int, bits: int, width: int = 32) -> Cost:
    """Of comparing that many numbers of `width` bits under a key of `bits` bits."""
    digits = _digit_count(width)
    asked, answered = comparisons * digits * STEPS, comparisons * (digits + 1)
    size = bits // 8
    return Cost(
        comparisons,
        encryptions=asked,
        masks=answered,
        zero_tests=answered,
        question_bytes=TAG_BYTES + size * asked,
        answer_bytes=TAG_BYTES + size * answered,
    )


def begin(
    key: PrivateKey, values: Sequence[int], width: int = 32, randomness: Randomness = SYSTEM
) -> bytes:
    """The asker's question: its numbers, encrypted digit by digit."""
    plain = [
        int(digit < step)
        for number in _numbers(values, width)
        for digit in _digits(number, width)
        for step in range(1, STEPS + 1)
    ]
    public = key.public
    tag = _tag("question", public, width, len(values))
    return tag + public.write(key.encrypt(plain, randomness))


def answer(
    key: PublicKey,
    question: bytes,
    values: Sequence[int],
    flips: Sequence[bool],
    width: int = 32,
    randomness: Randomness = SYSTEM,
) -> bytes:
    """The answerer's reply, from which the asker will read [value < its own] xor flip."""
    numbers = _numbers(values, width)
    if len(flips) != len(numbers):
        raise UsageError(f"{len(numbers)} numbers need as many flips, not {len(flips)}.")
    asked = _opened(question, "question", key, width, len(numbers), _digit_count(width) * STEPS)
    stream = randomness.stream()
    blinded: list[mpz] = []
    for thermometers, number, flip in zip(asked, numbers, flips, strict=True):
        tests = _tests(key, thermometers, _digits(number, width), bool(flip))
        factors = _nonzero(len(tests), stream)
        hidden = [key.multiply(c, factor) for c, factor in zip(tests, factors, strict=True)]
        blinded += permuted(hidden, random_permutation(len(hidden), randomness))
    tag = _tag("answer", key, width, len(numbers))
    return tag + key.write(key.rerandomise(blinded, randomness))


def finish(key: PrivateKey, reply: bytes, count: int, width: int = 32) -> list[bool]:
    """The asker's results of `count` comparisons, each [x < y] xor flip."""
    tested = _opened(reply, "answer", key.public, width, count, _digit_count(width) + 1)
    zeros = [sum(key.are_zero(tests)) for tests in tested]
    if any(found > 1 for found in zeros):
        raise InputError("an answer has more than one zero, which no comparison gives: ask again.")
    return [found == 1 for found in zeros]


def begin_signs(key: PrivateKey, shares: Sequence[int], randomness: Randomness = SYSTEM) -> bytes:
    """To learn the signs of differences (x − y) modulo 2^32 with |x − y| < 2^31: the asker's y.

    The top bit of a difference is x's, xor y's, xor the borrow of the lower bits, which is a
    comparison. The answerer's top bit is its flip, so that nobody sees the borrow itself.
    """
    return begin(key, [_low(share) for share in _words(shares)], SIGN_BIT, randomness)


def answer_signs(
    key: PublicKey, question: bytes, shares: Sequence[int], randomness: Randomness = SYSTEM
) -> bytes:
    """The answerer's reply, for its shares x."""
    words = _words(shares)
    low, flips = [_low(word) for word in words], [_top(word) for word in words]
    return answer(key, question, low, flips, SIGN_BIT, randomness)


def finish_signs(key: PrivateKey, reply: bytes, shares: Sequence[int]) -> list[bool]:
    """Whether x − y is negative, for the shares y that `begin_signs` was given."""
    words = _words(shares)
    found = finish(key, reply, len(words), SIGN_BIT)
    return [bit != _top(word) for bit, word in zip(found, words, strict=True)]


def _tests(
    key: PublicKey, thermometers: Sequence[mpz], digits: Sequence[int], flip: bool
) -> list[mpz]:
    """Numbers from 0 to len(digits), one of them zero if [x < y] xor flip, else none.

    A number is zero if the higher digits are equal and this one decides: x's below y's, or above
    if flipped. One number more stands for equality, which counts if flipped; else it is 1.
    """
    one = key.constant(1)
    unequal = key.constant(0)  # how many of the digits so far differ
    tests = []
    for place, digit in enumerate(digits):
        steps = thermometers[place * STEPS : (place + 1) * STEPS]
        below = [key.constant(0), *steps, one]  # below[d]: is y's digit below d?
        smaller, not_above = below[digit], below[digit + 1]  # y's digit against x's
        misses = key.add(one, key.negative(smaller)) if flip else not_above
        tests.append(key.add(unequal, misses))
        above = key.add(one, key.negative(not_above))
        unequal = key.add(unequal, smaller, above)
    return [*tests, unequal if flip else one]


def _nonzero(count: int, stream: Keystream) -> list[int]:
    """Uniform plaintexts other than 0. Bytes beyond a multiple of their number are thrown away."""
    choices = PLAINTEXTS - 1
    limit = 256 // choices * choices
    drawn: list[int] = []
    while len(drawn) < count:
        drawn += [1 + byte % choices for byte in stream.bytes(2 * count) if byte < limit]
    return drawn[:count]


def _digit_count(width: int) -> int:
    if not 1 <= width <= WIDEST:
        raise UsageError(f"numbers of 1 to {WIDEST} bits are compared, not of {width}.")
    return -(-width // DIGIT_BITS)


def _digits(number: int, width: int) -> list[int]:
    """Base 4, the most significant first."""
    shifts = range(DIGIT_BITS * (_digit_count(width) - 1), -1, -DIGIT_BITS)
    return [number >> shift & STEPS for shift in shifts]


def _numbers(values: Sequence[int], width: int) -> list[int]:
    _digit_count(width)
    numbers = [operator.index(value) for value in values]
    if not all(0 <= number < 1 << width for number in numbers):
        raise UsageError(f"a number is outside [0, 2^{width}): choose a larger width.")
    return numbers


def _words(shares: Sequence[int]) -> list[int]:
    return _numbers(shares, SIGN_BIT + 1)


def _low(word: int) -> int:
    return word & ((1 << SIGN_BIT) - 1)


def _top(word: int) -> bool:
    return bool(word >> SIGN_BIT)


def _tag(kind: str, key: PublicKey, width: int, count: int) -> bytes:
    """What a message must begin with, so that both sides speak of the same comparisons."""
    about = f"tacit comparison {kind} {width} {count} ".encode()
    return hashlib.sha256(about + key.fingerprint).digest()


def _opened(
    body: bytes, kind: str, key: PublicKey, width: int, count: int, each: int
) -> list[list[mpz]]:
    """The checked ciphertexts of a message, by comparison."""
    if body[:TAG_BYTES] != _tag(kind, key, width, count):
        raise InputError(
            f"this is not the {kind} for {count} numbers of {width} bits under {key}: its sender "
            "has another key, width or number of comparisons."
        )
    ciphertexts = key.read(body[TAG_BYTES:])
    if len(ciphertexts) != count * each:
        raise InputError(f"the {kind} has {len(ciphertexts)} ciphertexts, not {count * each}.")
    return [ciphertexts[i * each : (i + 1) * each] for i in range(count)]
