"""Comparison: right for all small numbers, and nobody sees more than the note says."""

from __future__ import annotations

import hashlib
from itertools import product

import gmpy2
import numpy as np
import pytest
from gmpy2 import mpz
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from tacit.crypto import comparison
from tacit.crypto.comparison import (
    WIDEST,
    answer,
    answer_signs,
    begin,
    begin_signs,
    cost,
    finish,
    finish_signs,
)
from tacit.crypto.dgk import PLAINTEXTS, PrivateKey
from tacit.crypto.prg import SeededRandomness
from tacit.errors import InputError, UsageError

KEY = PrivateKey.generate(2048, SeededRandomness("a key"))
OTHER = PrivateKey.generate(2048, SeededRandomness("another key"))
PUBLIC = KEY.public
P, _, V_P, _ = KEY.secrets
TABLE = {int(gmpy2.powmod(PUBLIC.g, V_P * m, P)): m for m in range(PLAINTEXTS)}
FALSE_ALARM = 1e-6  # draws are seeded: this is how often another seed would fail

Case = tuple[int, int, bool]  # x, y, flip


def compared(cases: list[Case], width: int) -> list[bool]:
    xs, ys, flips = (list(column) for column in zip(*cases, strict=True))
    reply = answer(PUBLIC, begin(KEY, ys, width), xs, flips, width)
    return finish(KEY, reply, len(cases), width)


def views(case: Case, width: int, count: int, seed: int) -> np.ndarray:
    """What the asker can decrypt of `count` answers to the same comparison, one in each row."""
    x, y, flip = case
    randomness = SeededRandomness(seed)
    question = begin(KEY, [y] * count, width, randomness)
    reply = answer(PUBLIC, question, [x] * count, [flip] * count, width, randomness)
    ciphertexts = PUBLIC.read(reply[32:])
    plain = [TABLE[int(gmpy2.powmod(c, V_P, P))] for c in ciphertexts]
    return np.array(plain).reshape(count, -1)


@pytest.mark.parametrize("width", [1, 2, 3, 4])
def test_all_small_numbers(width: int) -> None:
    cases = list(product(range(1 << width), range(1 << width), [False, True]))
    assert compared(cases, width) == [(x < y) != flip for x, y, flip in cases]


@pytest.mark.parametrize("width", [5, 31, 32, 63, WIDEST])
def test_extremes(width: int) -> None:
    top = (1 << width) - 1
    edges = [0, 1, top, top - 1, 1 << (width - 1), (1 << (width - 1)) - 1]
    pairs = [(x, y) for x in edges for y in edges]
    cases = [(x, y, bool((i + width) % 2)) for i, (x, y) in enumerate(pairs)]
    assert compared(cases, width) == [(x < y) != flip for x, y, flip in cases]


@st.composite
def near(draw: st.DrawFn) -> Case:
    """Numbers that agree in many leading bits, as well as arbitrary ones."""
    x = draw(st.integers(0, 2**32 - 1))
    y = x ^ draw(st.integers(0, (1 << draw(st.integers(0, 32))) - 1))
    return x, y, draw(st.booleans())


@settings(max_examples=15)
@given(st.lists(near(), min_size=1, max_size=4))
def test_large_numbers(cases: list[Case]) -> None:
    assert compared(cases, 32) == [(x < y) != flip for x, y, flip in cases]


def test_a_key_of_3072_bits_and_numpy_integers() -> None:
    key = PrivateKey.generate(3072, SeededRandomness("long"))
    xs, ys = np.array([5, 6, 7], dtype=np.uint32), np.array([6, 6, 6], dtype=np.uint32)
    reply = answer(key.public, begin(key, ys), xs, [False] * 3)  # type: ignore[arg-type]
    assert finish(key, reply, 3) == [True, False, False]


def test_no_comparisons() -> None:
    assert finish(KEY, answer(PUBLIC, begin(KEY, []), [], []), 0) == []


# --- signs of shared differences ---------------------------------------------------------------


def signs(xs: list[int], ys: list[int]) -> list[bool]:
    return finish_signs(KEY, answer_signs(PUBLIC, begin_signs(KEY, ys), xs), ys)


def test_signs_of_all_small_differences(monkeypatch: pytest.MonkeyPatch) -> None:
    """Shares modulo 16 instead of 2^32: all pairs whose difference is not −8, its own negative."""
    monkeypatch.setattr(comparison, "SIGN_BIT", 3)
    pairs = [(x, y) for x in range(16) for y in range(16) if (x - y) % 16 != 8]
    xs, ys = (list(side) for side in zip(*pairs, strict=True))
    assert signs(xs, ys) == [(x - y) % 16 > 8 for x, y in pairs]


@settings(max_examples=10)
@given(st.lists(st.tuples(st.integers(0, 2**32 - 1), near()), min_size=1, max_size=3))
def test_signs_of_large_differences(cases: list[tuple[int, Case]]) -> None:
    ys = [y for y, _ in cases]
    differences = [(a >> 1) - (b >> 1) for _, (a, b, _) in cases]
    xs = [(y + d) % 2**32 for y, d in zip(ys, differences, strict=True)]
    assert signs(xs, ys) == [d < 0 for d in differences]


def test_signs_at_the_extremes() -> None:
    largest = 2**31 - 1
    cases = list(product([0, 1, -1, largest, -largest], [0, 1, 2**31 - 1, 2**31, 2**32 - 1]))
    ys = [y for _, y in cases]
    assert signs([(y + d) % 2**32 for d, y in cases], ys) == [d < 0 for d, _ in cases]


# --- what each side sees -----------------------------------------------------------------------


def test_the_answerer_sees_other_ciphertexts_each_time() -> None:
    first, second = (begin(KEY, [9, 9], 8) for _ in range(2))
    ciphertexts = [*PUBLIC.read(first[32:]), *PUBLIC.read(second[32:])]
    assert len(set(ciphertexts)) == len(ciphertexts) == 2 * 2 * 4 * 3


def test_answers_do_not_contain_the_question() -> None:
    question = begin(KEY, [9, 9], 8)
    replies = [answer(PUBLIC, question, [3, 3], [False, True], 8) for _ in range(2)]
    seen = [PUBLIC.read(body[32:]) for body in (question, *replies)]
    assert len(set().union(*seen)) == sum(map(len, seen)) == 24 + 2 * 10
    known = {PUBLIC.constant(m) for m in range(PLAINTEXTS)}  # an equality that is not asked for
    assert known.isdisjoint(set().union(*seen))


@pytest.mark.parametrize(
    "case", [(0, 0, True), (0, 15, False), (14, 15, False), (15, 0, True), (9, 8, True)]
)
def test_a_true_answer_has_one_zero(case: Case) -> None:
    seen = views(case, 4, 20, seed=1)
    assert seen.shape == (20, 3)
    assert ((seen == 0).sum(axis=1) == 1).all()


@pytest.mark.parametrize("case", [(0, 0, False), (15, 0, False), (14, 15, True), (0, 15, True)])
def test_a_false_answer_has_none(case: Case) -> None:
    assert (views(case, 4, 20, seed=1) != 0).all()


def uniformity(seen: np.ndarray) -> float:
    """The p-value of: all numbers but zero are equally likely."""
    nonzero = seen[seen != 0]
    return float(stats.chisquare(np.bincount(nonzero, minlength=PLAINTEXTS)[1:]).pvalue)


def placement(seen: np.ndarray) -> float:
    """The p-value of: the zero is in every place equally often."""
    return float(stats.chisquare((seen == 0).sum(axis=0)).pvalue)


def cells(seen: np.ndarray) -> np.ndarray:
    """What the whole of an answer looks like, in 3·3·3 cells: places of zeros, and remainders."""
    zero = np.where((seen == 0).any(axis=1), (seen == 0).argmax(axis=1) + 1, 0)
    return np.bincount((zero * 3 + seen[:, 0] % 3) * 3 + seen[:, 1] % 3, minlength=27)


def likeness(one: np.ndarray, other: np.ndarray) -> float:
    """The p-value of: both have the same distribution."""
    table = np.stack([cells(one), cells(other)])
    return float(stats.chi2_contingency(table[:, table.sum(axis=0) > 0]).pvalue)


@pytest.mark.statistical
def test_factors_are_uniform() -> None:
    """Enough draws to see the remainders of bytes that were not thrown away."""
    drawn = comparison._nonzero(200_000, SeededRandomness(12).stream())
    assert uniformity(np.array(drawn)) > FALSE_ALARM
    assert uniformity(1 + np.arange(200_000) % 256 % (PLAINTEXTS - 1)) < FALSE_ALARM


@pytest.mark.statistical
def test_what_is_not_zero_is_uniform_and_what_is_zero_is_anywhere() -> None:
    true, false = views((5, 6, False), 4, 400, seed=2), views((6, 5, False), 4, 400, seed=3)
    assert uniformity(true) > FALSE_ALARM
    assert uniformity(false) > FALSE_ALARM
    for column in false.T:
        assert uniformity(column) > FALSE_ALARM
    assert placement(true) > FALSE_ALARM


@pytest.mark.statistical
@pytest.mark.parametrize("result", [True, False])
def test_the_askers_view_depends_on_the_result_only(result: bool) -> None:
    """Two ciphertexts each: x much smaller, equal, or larger, flipped or not."""
    cases: list[Case] = [(0, 3, False), (3, 0, True), (2, 2, True)]
    if not result:
        cases = [(x, y, not flip) for x, y, flip in cases]
    first, *others = (views(case, 2, 400, seed=4 + i) for i, case in enumerate(cases))
    assert all(likeness(first, other) > FALSE_ALARM for other in others)
    opposite = views((0, 3, result), 2, 400, seed=9)
    assert likeness(first, opposite) < FALSE_ALARM  # the test sees what there is to see


@pytest.mark.statistical
def test_without_blinding_or_permuting_the_view_is_not_uniform(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    with monkeypatch.context() as patch:
        patch.setattr(comparison, "_nonzero", lambda count, stream: [1] * count)
        assert uniformity(views((6, 5, False), 4, 100, seed=10)) < FALSE_ALARM
    with monkeypatch.context() as patch:
        patch.setattr(comparison, "permuted", lambda values, places: values)
        assert placement(views((5, 6, False), 4, 100, seed=11)) < FALSE_ALARM


# --- messages ----------------------------------------------------------------------------------


def test_malformed_questions_are_refused() -> None:
    question = begin(KEY, [3, 4], 6)
    tag, size = 32, PUBLIC.size
    wrong = {
        "nothing": b"",
        "cut": question[:-1],
        "a ciphertext short": question[:-size],
        "a ciphertext more": question + question[-size:],
        "zero": question[:-size] + bytes(size),
        "beyond n": question[:-size] + b"\xff" * size,
        "a factor of n": question[:-size] + P.to_bytes(size, "big"),
        "damaged tag": bytes([question[0] ^ 1]) + question[1:],
        "no tag": question[tag:],
        "another width": begin(KEY, [3, 4], 8),
        "other digits of the same number": begin(KEY, [3, 4], 5),
        "another count": begin(KEY, [3, 4, 5], 6),
        "another key": begin(OTHER, [3, 4], 6),
        "an answer": answer(PUBLIC, question, [1, 1], [False, False], 6),
    }
    for what, bad in wrong.items():
        with pytest.raises(InputError):
            pytest.fail(f"accepted: {what} {answer(PUBLIC, bad, [1, 1], [True, True], 6)!r}")


def test_malformed_answers_are_refused() -> None:
    question = begin(KEY, [3, 4], 6)
    reply = answer(PUBLIC, question, [1, 1], [False, False], 6)
    size = PUBLIC.size
    zeros = PUBLIC.write(KEY.encrypt([0, 0]))
    wrong = {
        "nothing": b"",
        "cut": reply[:-1],
        "a ciphertext short": reply[:-size],
        "zero": reply[:-size] + bytes(size),
        "a factor of n": reply[:-size] + P.to_bytes(size, "big"),
        "made up": reply[:-size] + hashlib.shake_256(b"x").digest(size - 1).rjust(size, b"\0"),
        "the question": question,
        "two zeros": reply[:32] + zeros + reply[32 + 2 * size :],
    }
    assert finish(KEY, reply, 2, 6) == [True, True]
    for what, bad in wrong.items():
        with pytest.raises(InputError):
            pytest.fail(f"accepted: {what} {finish(KEY, bad, 2, 6)}")
    for key, count, width in ((OTHER, 2, 6), (KEY, 1, 6), (KEY, 2, 5)):
        with pytest.raises(InputError, match="another key, width or number"):
            finish(key, reply, count, width)


def test_wrong_calls_are_refused() -> None:
    for width in (0, -1, WIDEST + 1):
        with pytest.raises(UsageError, match="1 to 64 bits"):
            begin(KEY, [], width)
    for values in ([-1], [4], [0, 1, 7777]):
        with pytest.raises(UsageError, match=r"\[0, 2\^2\)") as refused:
            begin(KEY, values, 2)
        assert "7777" not in str(refused.value)
    with pytest.raises(UsageError, match="as many flips"):
        answer(PUBLIC, begin(KEY, [1]), [1], [])
    with pytest.raises(UsageError, match=r"2\^32"):
        begin_signs(KEY, [2**32])


@pytest.mark.parametrize("width", [1, 7, 31])
def test_the_cost_is_what_is_paid(width: int, monkeypatch: pytest.MonkeyPatch) -> None:
    counted = {"masks": 0, "tests": 0}

    def masks(terms: list[mpz], randomness: object) -> list[mpz]:
        counted["masks"] += len(terms)
        return terms

    def tests(terms: list[mpz]) -> list[bool]:
        counted["tests"] += len(terms)
        return [False] * len(terms)

    monkeypatch.setattr(PUBLIC, "rerandomise", masks)
    monkeypatch.setattr(KEY, "are_zero", tests)
    question = begin(KEY, [0, 1], width)
    reply = answer(PUBLIC, question, [1, 1], [False, True], width)
    finish(KEY, reply, 2, width)
    expected = cost(2, PUBLIC.bits, width)
    assert expected.comparisons == 2
    assert expected.encryptions == (len(question) - 32) // PUBLIC.size
    assert (expected.masks, expected.zero_tests) == (counted["masks"], counted["tests"])
    assert (expected.question_bytes, expected.answer_bytes) == (len(question), len(reply))
