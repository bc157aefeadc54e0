"""What every account was charged, computed a second time by other code, from the entries alone.

It shares no line with state.py, accounts.py, amounts.py, units.py, filter.py and the accountants:
one pass over all entries for each account, floating-point sums, divergences by definition (sums and
integrals over the two laws), and the conversion solved the other way round.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import combinations
from typing import TYPE_CHECKING, Any

import numpy as np

from tacit.errors import InternalFault

if TYPE_CHECKING:
    from tacit.privacy.ledger.chain import Entry
    from tacit.privacy.ledger.state import State

__all__ = ["Recomputed", "check_recomputed", "recomputed"]

ORDER_OF_UNITS = ("record", "person", "holder")
CLOSE = 1e-6  # relative; floats here, exact sums there


@dataclass(frozen=True)
class Recomputed:
    """Sums over everything charged or reserved for one account."""

    epsilon: float
    delta: float
    divergence: float
    leak: float


@dataclass
class _Spend:
    body: dict[str, Any]
    epsilon: float
    delta: float


def check_recomputed(entries: Sequence[Entry], state: State) -> None:
    """InternalFault if the two ways differ, or if a filter's budget is not worth its ceiling."""
    for (dataset, unit), account in state.accounts.items():
        rule, total = account.rule, account.total(state.open_of(dataset))
        adjacency = account.spent_under
        again = recomputed(entries, dataset, str(unit), rule.order, adjacency and str(adjacency))
        first = [total.amount.epsilon, total.amount.delta]
        second = [again.epsilon, again.delta]
        if rule.order is not None:
            first += [total.divergence / 2**60, total.leak]
            second += [again.divergence, again.leak]
            _check_budget(rule.order, rule.budget / 2**60, account.allowed)
        if not all(_close(float(a), b) for a, b in zip(first, second, strict=True)):
            raise InternalFault(
                f"data set {dataset!r} per {unit}: two ways of summing its spends differ "
                f"({[float(x) for x in first]} and {second}). Nothing may be spent; report this."
            )


def _close(one: float, other: float) -> bool:
    return one == other or math.isclose(one, other, rel_tol=CLOSE, abs_tol=1e-12)


def _check_budget(order: int, budget: float, allowed: Any) -> None:
    """Canonne, Kamath & Steinke 2020, proposition 12, solved for δ: a quarter of the ceiling's."""
    if budget == 0:
        return
    exponent = (order - 1) * (budget - float(allowed.epsilon)) + order * math.log(1 - 1 / order)
    if math.exp(exponent) / (order - 1) > float(allowed.delta) / 4 * (1 + 1e-9):
        raise InternalFault(f"a divergence of {budget} at order {order} does not keep {allowed}.")


def recomputed(
    entries: Sequence[Entry], dataset: str, unit: str, order: int | None, adjacency: str | None
) -> Recomputed:
    """What the account of `unit` was charged, under its adjacency, at its order."""
    spends, most = _spends(entries, dataset), _most(entries, dataset, unit)
    whole, partitions = [0.0] * 4, {}  # type: ignore[var-annotated]
    for spend in spends:
        costs = _costs(spend, unit, adjacency, most, order)
        if costs is None:
            continue
        if spend.body["part"] is None:
            whole = [a + b for a, b in zip(whole, costs, strict=True)]
        else:
            parts = partitions.setdefault(_partition(spend.body), {})
            before = parts.get(spend.body["part"], [0.0] * 4)
            parts[spend.body["part"]] = [a + b for a, b in zip(before, costs, strict=True)]
    for parts in partitions.values():
        worst = _worst(list(parts.values()), 2 if adjacency == "replace" else 1)
        whole = [a + b for a, b in zip(whole, worst, strict=True)]
    return Recomputed(*whole)


def _worst(parts: list[list[float]], touched: int) -> list[float]:
    """Over all ways to lie in so many parts; each figure for itself."""
    some = list(combinations(parts, min(touched, len(parts))))
    return [max(sum(part[i] for part in chosen) for chosen in some) for i in range(4)]


def _spends(entries: Sequence[Entry], dataset: str) -> list[_Spend]:
    found: dict[int, _Spend] = {}
    for entry in entries:
        body = entry.body
        if entry.kind == "reserve" and body["dataset"] == dataset:
            found[entry.seq] = _Spend(body, float(body["epsilon"]), float(body["delta"]))
        elif entry.kind == "release":
            found.pop(body["reservation"], None)
        elif entry.kind == "commit" and body["reservation"] in found:
            spend = found[body["reservation"]]
            spend.epsilon, spend.delta = float(body["epsilon"]), float(body["delta"])
    return list(found.values())


def _most(entries: Sequence[Entry], dataset: str, unit: str) -> dict[str, int | None]:
    stated = [
        entry.body
        for entry in entries
        if entry.kind == "allow" and (entry.body["dataset"], entry.body["unit"]) == (dataset, unit)
    ][-1]
    return {"record": stated.get("most_records"), "person": stated.get("most_persons")}


def _partition(body: dict[str, Any]) -> str:
    if "partition" in body:
        return str(body["partition"])
    purpose = str(body["purpose"])
    words = purpose.split(" ")
    peers = len(words) > 3 and words[0] == "peers" and words[2] == "group"
    return " ".join(words[:2]) if peers else purpose


def _costs(
    spend: _Spend,
    unit: str,
    adjacency: str | None,
    most: dict[str, int | None],
    order: int | None,
) -> list[float] | None:
    """ε, δ, divergence and leak of one spend, as often as the account's unit calls for."""
    times = 1
    own, ours = spend.body["unit"], adjacency or spend.body["adjacency"]
    if ORDER_OF_UNITS.index(own) > ORDER_OF_UNITS.index(unit):
        times = 2
    elif own != unit:
        stated = most[own]
        if stated is None:
            return None
        times = stated
    if spend.body["adjacency"] != ours:
        if ours == "add-remove":
            return None
        times *= 2
    delta = _delta(spend.epsilon, spend.delta, times)
    if order is None:
        return [times * spend.epsilon, delta, 0.0, 0.0]
    cost = spend.body.get("cost")
    if cost is None:
        divergence, leak = _randomised(times * spend.epsilon, order), delta
    else:
        divergence = max(sum(_divergence(x, times, order) for x in some) for some in cost)
        leak = max(
            sum(x["count"] * _delta(_ratio(x["epsilon"]), float(x["delta"]), times)
                for x in some if x["law"] == "pure")
            for some in cost
        )  # fmt: skip
    return [times * spend.epsilon, delta, divergence, leak]


def _delta(epsilon: float, delta: float, times: int) -> float:
    """δ·(e^(kε) − 1)/(e^ε − 1), one step after another."""
    total = 0.0
    for _ in range(times):
        total = min(1.0, total * math.exp(min(epsilon, 700.0)) + delta) if delta else 0.0
    return total


def _divergence(loss: dict[str, Any], times: int, order: int) -> float:
    if loss["law"] == "gaussian":
        mu, rate = times * float(loss["mu"]), float(loss["sampling"]) if times == 1 else 1.0
        return float(loss["count"]) * _sampled(mu, rate, order)
    epsilon = times * _ratio(loss["epsilon"])
    found = _randomised(epsilon, order)
    if loss["bounded_range"]:
        found = min(found, order * epsilon**2 / 8)
    return float(loss["count"]) * found


def _ratio(text: str) -> float:
    above, _, below = text.partition("/")
    return int(above) / int(below or 1) if below or "." not in above else float(above)


def _randomised(epsilon: float, order: int) -> float:
    """Between the two laws of randomised response: ln(p^α q^(1−α) + q^α p^(1−α))/(α−1)."""
    if epsilon == math.inf:
        return math.inf
    p, q = -math.log1p(math.exp(-epsilon)), -math.log1p(math.exp(epsilon)) if epsilon < 30 else (
        -epsilon - math.exp(-epsilon)
    )  # fmt: skip
    found = float(np.logaddexp(order * p + (1 - order) * q, order * q + (1 - order) * p))
    return min(max(0.0, found / (order - 1)), order * epsilon**2 / 2, epsilon)


@lru_cache(maxsize=4096)
def _sampled(mu: float, rate: float, order: int) -> float:
    """∫ N(0, 1)·(1 − q + q·e^(μx − μ²/2))^α, numerically: the trapezium rule on a wide grid is
    exact to many digits for such smooth functions."""
    if mu == 0:
        return 0.0
    x = np.linspace(-40.0, 40.0 + order * mu, 400_001)
    likelihood = mu * x - mu * mu / 2
    mixed = likelihood
    if rate < 1:
        mixed = np.logaddexp(math.log1p(-rate), math.log(rate) + likelihood)
    log_terms = order * mixed - x * x / 2
    largest = float(log_terms.max())
    area = float(np.exp(log_terms - largest).sum()) * float(x[1] - x[0])
    found = (largest + math.log(area) - math.log(2 * math.pi) / 2) / (order - 1)
    return min(max(0.0, found), order * mu * mu / 2)
