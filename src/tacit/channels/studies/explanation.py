"""What is said of a study before anyone takes part: the same for every channel."""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass, field
from typing import Any

from tacit.channels.studies.made_up import Loss
from tacit.channels.studies.study import Study
from tacit.privacy.promise import Adjacency, Unit
from tacit.programs.expected import ExpectedError

__all__ = ["BlockNoise", "Explanation", "promised"]


@dataclass(frozen=True, slots=True)
class BlockNoise:
    """The noise of something that is released, as standard deviations in its own unit.

    adder      who adds noise: each server, each party
    one_part   what one of them adds
    central    what one trusted place would add for the same promise
    """

    block: str
    mechanism: str
    length: int
    bound: float
    adder: str
    one_part: float
    result: float
    central: float


@dataclass(frozen=True, slots=True)
class Explanation:
    """What people decide by.

    sees       who → what they see, in sentences
    factor     how many times as large the noise of the result is as a trusted place's would be
    loss       from a rehearsal on made-up data; None if it was not asked for
    schedule   how many rounds there are, and about which records
    expected   of the result on a typical table, by the program's rule; None where there is none
    ranges     which columns' ranges are found under the promise, and at what cost; else empty
    seen     how the program looks at records, if not as they are encoded; else empty
    options    what sampling and selection buy, and at what price; empty without them
    """

    promise: str
    trust: str
    sees: dict[str, list[str]]
    noise: list[BlockNoise]
    factor: float
    noise_words: str
    cost: str
    drop_out: list[str]
    loss: Loss | None
    schedule: list[str] = field(default_factory=list)
    expected: ExpectedError | None = None
    ranges: str = ""
    seen: str = ""
    options: list[str] = field(default_factory=list)

    @property
    def lines(self) -> list[str]:
        """All of it as sentences."""
        seen = [f"{who}: {line}" for who, lines in self.sees.items() for line in lines]
        blocks = [
            f"Noise of {n.block} ({n.mechanism}, {n.length} numbers, one unit contributes at most "
            f"{n.bound:g}): {n.adder} adds a standard deviation of {n.one_part:.4g}; the result "
            f"has {n.result:.4g}; a trusted place would add {n.central:.4g}."
            for n in self.noise
        ]
        loss = [str(said) for said in (self.expected, self.loss) if said is not None]
        return [
            self.promise,
            self.trust,
            *seen,
            self.noise_words,
            *blocks,
            *self.schedule,
            *self.options,
            self.cost,
            *([self.ranges] if self.ranges else []),
            *([self.seen] if self.seen else []),
            *self.drop_out,
            *loss,
        ]

    def to_dict(self) -> dict[str, Any]:
        return asdict(self)


def promised(study: Study) -> str:
    """The promise, in words."""
    promise = study.promise
    if not promise.is_private:
        return "NO PROMISE: epsilon is infinite, and the exact sums will be seen by everyone."
    what = {
        Unit.RECORD: "any single record",
        Unit.PERSON: "all records of any single person",
        Unit.HOLDER: "all records of any single holder",
    }[promise.unit]
    if promise.unit is Unit.PERSON:
        many = study.contributions
        holders = "one holder" if many == 1 else f"{many} holders"
        what += f", who is with at most {holders},"
    change = "were exchanged" if promise.adjacency is Adjacency.REPLACE else "were not there"
    delta = f", except with probability {promise.delta:g}" if promise.delta else ""
    return (
        f"The promise ({promise}): if {what} {change}, whatever anyone sees would be at most "
        f"{math.exp(promise.epsilon):.3g} times as likely or unlikely{delta}."
    )
