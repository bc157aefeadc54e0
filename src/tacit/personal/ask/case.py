"""One question over one person's events: its past examples, the asked-for cases, and what a model
or plain counting says of them."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from tacit.errors import InputError
from tacit.personal.ask.frequency import counted
from tacit.personal.ask.posing import Posed
from tacit.personal.ask.reading import Reading
from tacit.personal.ask.trust import Trusted, graded
from tacit.personal.durations import HOUR
from tacit.personal.learning.prediction import Prediction, predict
from tacit.personal.learning.training import Trained, train
from tacit.personal.problems.declared import DeclaredInstancer
from tacit.personal.problems.instances import Instances
from tacit.personal.problems.labels import TRUTHS
from tacit.personal.problems.making import features_of, matrix_over

__all__ = ["LEAST_EXAMPLES", "Case", "Result"]

LEAST_EXAMPLES = 20  # fewer are counted, and no model is made of them


@dataclass(frozen=True)
class Result:
    """The answer for one asked-for case.

    key      what it is about
    value    the chance of yes; the number; or the likeliest value
    low      the lower end of its range, if it has one, and `high` the upper
    chances  of a category: the likeliest values with their chances
    trust    how far to trust it
    """

    key: str
    value: float | str | None
    low: float | None
    high: float | None
    chances: tuple[tuple[str, float], ...]
    trust: Trusted


class Case:
    """What is known, and what is asked.

    now    the moment of asking
    until  when the record ends: what was not over by then is not learned from
    """

    def __init__(self, reading: Reading, posed: Posed, now: int, until: int) -> None:
        self.reading, self.posed, self.age = reading, posed, now - until
        self.task = reading.target.kind
        # As if it were already the beginning of what is asked about: else its instance would not
        # be there yet.
        as_of = max(now, *posed.at)
        instances = DeclaredInstancer(reading.problem).make_instances(posed.dataset, as_of)
        matrix = matrix_over(instances, features_of(reading.problem))
        groups = _groups(instances, reading.target.by)
        past = (instances.label_until - 1 <= until) & matrix.is_labelled
        asked = self._asked(instances, groups)
        self.past, self._past_groups = matrix.take(past), groups[past]
        self.asked, self._asked_groups = matrix.take(asked), groups[asked]
        self._span = instances.label_span

    def _asked(self, instances: Instances, groups: NDArray[np.object_]) -> NDArray[np.bool_]:
        """The rows asked about. A change of the clocks may move the edge of a day by an hour."""
        begins = instances.label_since
        slack = 0 if self.reading.target.shape == "event" else 2 * HOUR
        near = np.zeros(len(begins), np.bool_)
        for at in self.posed.at:
            apart = np.abs(begins - at)
            near |= (apart <= slack) & (apart == apart.min(initial=np.iinfo(np.int64).max))
        group = self.reading.asked_group
        return near if group is None else near & (groups == group)

    def trained(self, seed: int) -> tuple[Trained | None, str]:
        """A model, or why there is none."""
        if self.past.rows < LEAST_EXAMPLES:
            return None, (
                f"There are {self.past.rows} past examples, and a model needs at least "
                f"{LEAST_EXAMPLES}; this is plain counting."
            )
        try:
            return train(self.past, self.task, label_span=self._span, seed=seed), ""
        except InputError as error:
            return None, f"No model could be made ({error}); this is plain counting."

    def predicted(self, trained: Trained) -> list[Result]:
        return self._ranked([self._result(trained, p) for p in predict(trained, self.asked)])

    @property
    def held(self) -> NDArray[np.bool_]:
        """In which past examples everything that is supposed held."""
        columns = [self.past.names.index(s.features[0]) for s in self.reading.suppositions]
        held: NDArray[np.bool_] = (self.past.columns[:, columns] == 1).all(axis=1)
        return held

    def counted(self, trust: Trusted) -> list[Result]:
        """Each thing by its own past, where what is supposed held."""
        made = []
        for key, group in zip(self.asked.keys, self._asked_groups, strict=True):
            own = np.array([other == group for other in self._past_groups], np.bool_) & self.held
            found = counted(self.task, self.past.labels[own], self.past.classes)
            made.append(Result(key, found.value, found.low, found.high, found.shares, trust))
        return self._ranked(made)

    def _ranked(self, results: list[Result]) -> list[Result]:
        """Of several things, the likeliest first."""
        if not self.reading.target.by:
            return results
        return sorted(results, key=lambda r: -r.value if isinstance(r.value, float) else 0.0)

    def _result(self, trained: Trained, prediction: Prediction) -> Result:
        trust = graded(trained.report, prediction)
        if self.task == "number":
            least = 0.0 if self.past.labels.min() >= 0 else -np.inf  # no count is below nothing
            low, high = (
                b if b is None else max(b, least) for b in (prediction.low, prediction.high)
            )
            number = max(float(prediction.answer), least)
            return Result(prediction.key, number, low, high, (), trust)
        if self.task == "boolean":
            yes = prediction.chances[TRUTHS.index("true")]
            return Result(prediction.key, yes, None, None, (), trust)
        chances = dict(zip(trained.report.classes, prediction.chances, strict=True))
        best = sorted(chances.items(), key=lambda c: (-c[1], c[0]))[:5]
        return Result(prediction.key, best[0][0], None, None, tuple(best), trust)


def _groups(instances: Instances, by: str) -> NDArray[np.object_]:
    """The thing that each instance is about: a pipe; None if things are not told apart."""
    made = np.empty(len(instances), dtype=object)
    made[:] = instances.groups.get(by, (None,) * len(instances))
    return made
