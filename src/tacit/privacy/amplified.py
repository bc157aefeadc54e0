"""The central figure of a certificate: how little a report shows that was mixed with others.

It stands beside a local promise, which holds whatever anybody does. What it rests on is in it, in
numbers and in words, and `recomputed` works all of it out anew.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from tacit.errors import CertificateInvalid
from tacit.privacy.attested import BatchStatement, smallest_batch
from tacit.privacy.certificate_parts import release_document, release_of
from tacit.privacy.recompute_response import response_epsilon
from tacit.privacy.recompute_shuffle import chance_of_fewer, shuffled_epsilon
from tacit.privacy.release import Release

__all__ = ["Amplified", "Hidden"]

MOST = 1_000_000_000  # reports: what a verifier has the memory for


@dataclass(frozen=True, slots=True)
class Hidden:
    """One answer, and among how many it is hidden.

    local     its epsilon, whoever sees it
    reports   of distinct people that answered the same question in the main wave
    mixed     so many of them, the answer itself included, were shuffled together at the least
    question  its name; "" in certificates of version 0.1, which did not say
    stage, wave   the window in which they were
    randomiser    by which it was made, all that is known of its figure beside `local`; None in
                  older certificates, whose figure holds for every randomiser
    """

    local: float
    reports: int
    mixed: int
    question: str = ""
    stage: int = 0
    wave: int = 0
    randomiser: Release | None = None

    def recomputed(self, delta: float) -> float:
        """The central epsilon of this answer; CertificateInvalid if it cannot be."""
        if self.randomiser is None:
            return shuffled_epsilon(self.local, self.mixed, delta)
        try:
            return response_epsilon(self.randomiser, self.local, self.mixed, delta)
        except (ValueError, KeyError, ArithmeticError):
            raise CertificateInvalid(
                f"no randomiser of the crowd keeps ε = {self.local:g} with the numbers that it "
                "states."
            ) from None


@dataclass(frozen=True, slots=True)
class Amplified:
    """(epsilon, delta)-privacy towards everyone who sees the reports but not who sent which.

    answers     of the person who is hidden worst
    relays      of the study; an answer passes `hops` of them, one of each layer
    corrupt     so many people may belong to whoever wants to know, and hide nobody
    assumption  what it rests on, in words
    drawing     digest of the roster and of the lots; "" in certificates of version 0.1
    questions   all that were asked, so that everybody can see that nobody is hidden worse
    statements  what relays have signed of the batches of the main waves
    receipts    digests of all receipts, by stage: who was shown them can compare what was counted
    left_out    relays, by name, that the study or some wave of it went without
    """

    epsilon: float
    delta: float
    answers: tuple[Hidden, ...]
    relays: int
    hops: int
    corrupt: int
    assumption: str
    drawing: str = ""
    questions: tuple[Hidden, ...] = ()
    statements: tuple[BatchStatement, ...] = ()
    receipts: tuple[str, ...] = ()
    left_out: tuple[str, ...] = ()

    @property
    def is_attested(self) -> bool:
        """Whether relays have signed for it: version 0.1 took the collector's word."""
        return bool(self.drawing)

    @property
    def mixed(self) -> int:
        """Among how many the answer is hidden that is hidden worst."""
        return min(hidden.mixed for hidden in self.answers)

    @property
    def reports(self) -> int:
        """Of the question that got the fewest in the main wave."""
        return min(hidden.reports for hidden in self.answers)

    def recomputed(
        self, releases: Sequence[Release], cost: float, people: int | None, tolerance: float
    ) -> float:
        """The epsilon that follows from the numbers; CertificateInvalid if they cannot be.

        cost       of all of one person's releases, locally
        people     who took part, if that is known
        tolerance  how far two honest computations may lie apart, relatively
        """
        self._check_form(people)
        self._check_answers(releases, cost * (1 - tolerance))
        self._check_randomisers(releases)
        each = self.delta / len(self.answers)
        if self.is_attested:
            self._check_statements()
        else:  # half of delta was for too few that meet
            each /= 2
        for hidden in self.answers:
            if not self.is_attested:
                self._check_mixed(hidden, each * (1 + tolerance))
            elif hidden not in self.questions:
                raise CertificateInvalid("its central figure is about a question not in its list.")
        for hidden in self.questions:
            self._check_batches(hidden)
        epsilon = math.fsum(hidden.recomputed(each) for hidden in self.answers)
        if epsilon > self.epsilon * (1 + tolerance):
            raise CertificateInvalid(
                f"{self.mixed} reports mixed together come to a central ε = {epsilon:.6g}, more "
                f"than the {self.epsilon:g} that it states."
            )
        return epsilon

    def _check_form(self, people: int | None) -> None:
        numbers = [self.epsilon, *(hidden.local for hidden in self.answers)]
        most = max((hidden.reports for hidden in self.answers), default=MOST + 1)
        if not (
            all(0 < number < math.inf for number in numbers)
            and 0 < self.delta < 1
            and 1 <= self.hops <= self.relays
            and self.corrupt >= 0
            and most <= (MOST if people is None else min(people, MOST))
        ):
            raise CertificateInvalid("its central figure rests on numbers that cannot be.")

    def _check_answers(self, releases: Sequence[Release], cost: float) -> None:
        """Whether the answers are all that one person released, at their full price."""
        if any(release.bound is not None for release in releases):
            raise CertificateInvalid(
                "only what was randomised on each person's own device is hidden by mixing."
            )
        parts = Counter[str | None]()
        for release in releases:
            parts[release.part] += release.count
        common = parts.pop(None, 0)
        given = common + max(parts.values(), default=0)
        if len(self.answers) < given or math.fsum(h.local for h in self.answers) < cost:
            raise CertificateInvalid(
                f"its central figure is that of {len(self.answers)} answers; a person released "
                f"{given}, or dearer ones."
            )

    def _check_randomisers(self, releases: Sequence[Release]) -> None:
        """Whether what made the answers, where that is said, is what made those of one part."""
        named = [hidden.randomiser for hidden in self.answers if hidden.randomiser is not None]
        if not named:
            return
        parts: dict[str | None, Counter[_Made]] = {}
        for release in releases:
            parts.setdefault(release.part, Counter())[_made(release)] += release.count
        common = parts.pop(None, Counter())
        possible = [common + part for part in parts.values()] or [common]
        if len(named) < len(self.answers) or Counter(map(_made, named)) not in possible:
            raise CertificateInvalid(
                "its central figure is that of answers by other randomisers than a person's."
            )

    def _check_statements(self) -> None:
        """Each by a relay of its own, which has signed it."""
        if not all(one.drawing == self.drawing and one.holds for one in self.statements):
            raise CertificateInvalid("a relay has not signed what it says of the relay's batches.")
        about = Counter((one.relay, one.stage, one.wave) for one in self.statements)
        if max(about.values(), default=0) > 1 or len({r for r, _, _ in about}) > self.relays:
            raise CertificateInvalid("it has more statements of relays than there are relays.")

    def _check_batches(self, hidden: Hidden) -> None:
        """No more are mixed than the smallest batch that a relay of the circuit has signed, and
        than answers arrived; corrupt people hide nobody."""
        batch = smallest_batch(
            self.statements, hidden.stage, hidden.wave, hidden.question, self.hops
        )
        most = max(1, min(batch, hidden.reports) - self.corrupt)
        if not 1 <= hidden.mixed <= most:
            raise CertificateInvalid(
                f"it says that {hidden.mixed} answers to {hidden.question} were mixed; by what the "
                f"relays have signed, and {self.corrupt} corrupt people, it is {most} at the most."
            )

    def _check_mixed(self, hidden: Hidden, failure: float) -> None:
        """People who meet at a relay of the largest layer, drawn by everyone for herself."""
        honest = max(1, hidden.reports - self.corrupt)
        chance = 1 / math.ceil(self.relays / self.hops)
        if hidden.mixed < 1 or chance_of_fewer(hidden.mixed, honest - 1, chance) > failure:
            raise CertificateInvalid(
                f"of {hidden.reports} reports, {self.corrupt} of them perhaps corrupt, one cannot "
                f"be sure that {hidden.mixed} met at one relay."
            )

    def document(self) -> dict[str, Any]:
        """For the certificate; numbers of the proof as exact text."""
        more: dict[str, Any] = {}
        if self.is_attested:
            more = {
                "drawing": self.drawing,
                "questions": [self._answer(hidden) for hidden in self.questions],
                "statements": [one.document() for one in self.statements],
                "receipts": list(self.receipts),
                "left_out": list(self.left_out),
            }
        return {
            "epsilon": repr(self.epsilon),
            "delta": repr(self.delta),
            "answers": [self._answer(hidden) for hidden in self.answers],
            "relays": self.relays,
            "hops": self.hops,
            "corrupt": self.corrupt,
            "assumption": self.assumption,
            **more,
        }

    def _answer(self, hidden: Hidden) -> dict[str, Any]:
        found: dict[str, Any] = {
            "local": repr(hidden.local),
            "reports": hidden.reports,
            "mixed": hidden.mixed,
        }
        if hidden.randomiser is not None:
            found["randomiser"] = release_document(hidden.randomiser)
        if not self.is_attested:
            return found
        return {
            **found,
            "question": hidden.question,
            "stage": hidden.stage,
            "wave": hidden.wave,
        }

    @classmethod
    def from_document(cls, document: Mapping[str, Any]) -> Amplified:
        drawing = str(document.get("drawing", ""))
        return cls(
            epsilon=float(document["epsilon"]),
            delta=float(document["delta"]),
            answers=tuple(map(_hidden, document["answers"])),
            relays=int(document["relays"]),
            hops=int(document["hops"]),
            corrupt=int(document["corrupt"]),
            assumption=str(document["assumption"]),
            drawing=drawing,
            questions=tuple(map(_hidden, document.get("questions", ()))),
            statements=tuple(
                BatchStatement.from_document(one, drawing) for one in document.get("statements", ())
            ),
            receipts=tuple(str(one) for one in document.get("receipts", ())),
            left_out=tuple(str(name) for name in document.get("left_out", ())),
        )


def _hidden(document: Mapping[str, Any]) -> Hidden:
    return Hidden(
        float(document["local"]),
        int(document["reports"]),
        int(document["mixed"]),
        str(document.get("question", "")),
        int(document.get("stage", 0)),
        int(document.get("wave", 0)),
        release_of(document["randomiser"]) if "randomiser" in document else None,
    )


_Made = tuple[str, int, tuple[tuple[str, Fraction], ...]]


def _made(release: Release) -> _Made:
    return release.mechanism, release.length, tuple(sorted(release.parameters.items()))
