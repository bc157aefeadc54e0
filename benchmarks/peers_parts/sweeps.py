"""The thesis's figures 5.1 to 5.9 as sweeps, and the same questions on the second data set."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

from peers_parts.experiment import PUBLISHED, Outcome, Setting
from peers_parts.problems import PEERS, RECORDS

EPSILONS = (0.001, 0.01, 0.03, 0.1, 0.3, 1.0, 2.2, 10.0, 100.0, 1000.0)
PENALTIES = tuple(2.0**power for power in range(-5, 5))
LITTLE, MUCH = 2.0**10, 0.1  # epsilon: little noise, much noise


@dataclass(frozen=True)
class Sweep:
    """One figure: `varied` takes each value of `over`. By rule too, where λ is not what varies."""

    data: str
    title: str
    figure: str
    varied: Literal["epsilon", "penalty", "records", "group"]
    over: tuple[float, ...]
    base: Setting

    @property
    def with_rule(self) -> bool:
        return self.varied != "penalty"

    def settings(self) -> Iterator[tuple[float, Setting]]:
        whole = self.varied in ("records", "group")
        for value in self.over:
            changed: Any = {self.varied: int(value) if whole else value}
            yield value, replace(self.base, **changed)


@dataclass(frozen=True)
class Result:
    """(x, line, outcome) for every point."""

    sweep: Sweep
    points: tuple[tuple[float, str, Outcome], ...]

    @property
    def lines(self) -> list[str]:
        return list(dict.fromkeys(line for _, line, _ in self.points))

    @property
    def places(self) -> list[float]:
        return list(dict.fromkeys(x for x, _, _ in self.points))

    def at(self, x: float, line: str) -> Outcome:
        return next(o for place, name, o in self.points if (place, name) == (x, line))


def sweeps(quick: bool) -> list[Sweep]:
    found = [*_spambase(), *_australian()]
    if quick:
        return [replace(s, over=_every_other(s.over)) for s in found]
    return found


def _every_other(over: Sequence[float]) -> tuple[float, ...]:
    """The first and the last one always."""
    return tuple(dict.fromkeys((*over[:-1:2], over[-1])))


def _setting(data: str, epsilon: float, penalty: float, group: int) -> Setting:
    return Setting(PUBLISHED, epsilon, penalty, PEERS[data], RECORDS[data], group)


def _spambase() -> Iterator[Sweep]:
    name = "spambase"
    one = _setting(name, 1.0, 2.0**-4, 50)
    yield Sweep(name, "epsilon, one group of 50", "5.1, 5.3", "epsilon", EPSILONS, one)
    few = replace(_setting(name, 0.3, 2.0**-2, 30), peers=30)
    sizes = (5, 10, 20, 40, 66, 100, 138)
    yield Sweep(name, "records of each of 30 peers, ε = 0.3", "5.2", "records", sizes, few)
    pairs = replace(_setting(name, LITTLE, 1.0, 2), to="participants")
    yield Sweep(
        name, "penalty, little noise, 25 pairs, to participants", "5.4", "penalty", PENALTIES, pairs
    )
    pairs = _setting(name, MUCH, 1.0, 2)
    yield Sweep(name, "penalty, much noise, 25 pairs, to all", "5.5", "penalty", PENALTIES, pairs)
    pairs = replace(_setting(name, 1.0, 1.0, 2), to="participants")
    yield Sweep(
        name, "penalty, ε = 1, 25 pairs, to participants", "5.6", "penalty", PENALTIES, pairs
    )
    pairs = _setting(name, 1.0, 1.0, 2)
    yield Sweep(name, "penalty, ε = 1, 25 pairs, to all", "5.7", "penalty", PENALTIES, pairs)
    groups = (1, 2, 5, 10, 25, 50)
    for records, figure in ((66, "5.8"), (20, "5.9")):
        base = replace(_setting(name, 1.0, 1.0, 1), records=records)
        yield Sweep(name, f"group size, ε = 1, {records} records", figure, "group", groups, base)


def _australian() -> Iterator[Sweep]:
    name = "australian"
    one = _setting(name, 1.0, 2.0**-4, 30)
    yield Sweep(name, "epsilon, one group of 30", "as 5.1", "epsilon", EPSILONS, one)
    pairs = _setting(name, 1.0, 1.0, 2)
    yield Sweep(name, "penalty, ε = 1, 15 pairs, to all", "as 5.7", "penalty", PENALTIES, pairs)
    base = _setting(name, 1.0, 1.0, 1)
    groups = (1, 2, 5, 10, 15, 30)
    yield Sweep(name, "group size, ε = 1, 20 records", "as 5.9", "group", groups, base)
