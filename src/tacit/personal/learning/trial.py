"""The last test: what was chosen answers the latest rows, which no choice has seen."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from tacit.personal.learning.calibration import (
    AS_IT_IS,
    Calibration,
    Point,
    choose_calibration,
    fit_calibration,
    reliability,
)
from tacit.personal.learning.choice import Choice, Course, Said
from tacit.personal.learning.design import aligned
from tacit.personal.learning.models import GUESSES, Fitted
from tacit.personal.learning.report import Range, Report, Stretch, Useful, Verdict
from tacit.personal.learning.scores import Score, Sureness, losses, scores, skill
from tacit.personal.learning.useful import useful_features
from tacit.personal.learning.verdict import verdict
from tacit.personal.problems.labels import TRUTHS

__all__ = ["COVERAGE", "Trial", "class_words"]

Reals = NDArray[np.float64]

COVERAGE = 0.8  # of ranges of numbers
MOST_SAID = 500  # answers kept for the picture, the latest
LEAST_OF_A_CLASS = 5


@dataclass(frozen=True)
class Trial:
    """A choice, put to the test."""

    course: Course
    choice: Choice

    def report(self, features: tuple[str, ...]) -> Report:
        """`features` are those that the model fitted to everything looks at."""
        course, choice = self.course, self.choice
        return Report(
            task=course.task,
            label=course.matrix.label,
            classes=class_words(course.matrix.classes),
            rows=course.matrix.rows,
            held_out=len(course.splits.final.test),
            in_time=course.splits.in_time,
            recipe=choice.chosen,
            baseline=choice.guess,
            guess=self._guess_words,
            features=features,
            tried=choice.tried,
            scores=self._scores,
            verdict=self._verdict,
            useful=self._useful(),
            reliability=self._reliability(),
            said=self._said_and_true(),
            over_time=self._over_time(),
            calibration=self._last_correction(),
            range=self._range(),
            notes=self._notes(features),
        )

    @cached_property
    def _model(self) -> Fitted:
        """What was chosen, fitted to what was known before the last test."""
        course = self.course
        return course.fit(self.choice.chosen, course.part(course.splits.final.train))

    @cached_property
    def _raw(self) -> Said:
        return self.course.said(self._model, self.course.splits.final.test)

    @cached_property
    def _correction(self) -> Calibration:
        """As the folds chose it: the last test has no say."""
        if self._is_guess or self.course.task == "number":
            return AS_IT_IS
        return choose_calibration([(f.truth, f.answers) for f in self._folds])

    def _last_correction(self) -> Calibration:
        """The same method, learned from all rows that were answered unseen."""
        everything = Said.joined([*self._folds, self._raw])
        return fit_calibration(self._correction.method, (everything.truth, everything.answers))

    @cached_property
    def _said(self) -> Said:
        raw = self._raw
        return Said(raw.places, raw.truth, self._corrected(raw.answers))

    def _corrected(self, answers: Reals) -> Reals:
        return answers if self.course.task == "number" else self._correction.of(answers)

    @cached_property
    def _guessed(self) -> Said:
        course = self.course
        guess = course.fit(self.choice.guess, course.part(course.splits.final.train))
        return course.said(guess, course.splits.final.test)

    @property
    def _is_guess(self) -> bool:
        return self.choice.chosen.model in GUESSES

    @property
    def _folds(self) -> tuple[Said, ...]:
        return self.choice.folds[self.choice.chosen]

    @cached_property
    def _sure(self) -> Sureness:
        return self._sureness(self._said)

    def _sureness(self, said: Said) -> Sureness:
        return Sureness(self.course.splits.blocks[said.places], self.course.seed)

    @cached_property
    def _scores(self) -> tuple[Score, ...]:
        said = self._said
        return scores(self.course.task, said.truth, said.answers, self._guessed.answers, self._sure)

    @cached_property
    def _verdict(self) -> Verdict:
        """On the last test; where guessing was chosen, on the folds in which it won."""
        task = self.course.task
        if not self._is_guess:
            said, guessed, shown, sure = self._said, self._guessed, self._scores, self._sure
        else:
            said = Said.joined(self.choice.folds[self.choice.rival])
            guessed = Said.joined(self.choice.folds[self.choice.guess])
            shown, sure = (), self._sureness(said)
        share = sure.of(skill(task, said.truth, said.answers, guessed.answers))
        return verdict(share, sure.rows, sure.blocks, task, self._guess_words, shown)

    @cached_property
    def _guess_words(self) -> str:
        matrix = self.course.matrix
        if self.choice.guess.model == "last":
            return "repeating the last known value"
        if self.course.task == "number":
            return "always saying the mean"
        most = np.bincount(matrix.labels.astype(np.int64)).argmax()
        return f"always saying {class_words(matrix.classes)[int(most)]}"

    def _useful(self) -> tuple[Useful, ...]:
        if self._is_guess or self._model.estimator is None:
            return ()
        said, rows = self._said, self.course.matrix.take(self._said.places)
        return useful_features(
            lambda columns: self._corrected(self._model.of_columns(columns)),
            self.course.task,
            aligned(rows, self._model.like),
            self._model.like.names,
            said.truth,
            self._guessed.answers,
            self.course.splits.blocks[said.places],
            self.course.seed,
        )

    def _reliability(self) -> tuple[Point, ...]:
        """Of the second of two classes; of several, of the one said."""
        said = self._said
        if self.course.task == "number":
            return ()
        if said.answers.shape[1] == 2:
            return reliability(said.truth == 1, said.answers[:, 1])
        top = said.answers.argmax(axis=1)
        return reliability(said.truth == top, said.answers.max(axis=1))

    def _said_and_true(self) -> tuple[tuple[float, float], ...]:
        if self.course.task != "number":
            return ()
        both = np.column_stack([self._said.answers, self._said.truth])[-MOST_SAID:]
        return tuple((float(said), float(true)) for said, true in both)

    def _over_time(self) -> tuple[Stretch, ...]:
        parts = [*zip(self._folds, self.choice.folds[self.choice.guess], strict=True)]
        stretches = [self._stretch(own, guess, False) for own, guess in parts]
        return (*stretches, self._stretch(self._said, self._guessed, True))

    def _stretch(self, own: Said, guess: Said, is_last: bool) -> Stretch:
        times = self.course.matrix.cutoffs[own.places]
        value, baseline = _shown(self.course, own), _shown(self.course, guess)
        since, until = int(times.min()), int(times.max())
        return Stretch(since, until, len(times), value, baseline, is_last)

    def _range(self) -> Range | None:
        if self.course.task != "number":
            return None
        folds, last = Said.joined(self._folds), self._said
        before, after = folds.truth - folds.answers, last.truth - last.answers
        offsets, earlier = _offsets(np.concatenate([before, after])), _offsets(before)
        if offsets is None:
            return None
        held = None
        if earlier is not None:
            held = float(((after >= earlier[0]) & (after <= earlier[1])).mean())
        return Range(*offsets, COVERAGE, held, len(before) + len(after))

    def _notes(self, features: tuple[str, ...]) -> tuple[str, ...]:
        matrix, notes = self.course.matrix, []
        if not self.course.splits.in_time:
            notes.append(
                "Nearly all examples are of the same moment, so they were split at random: nothing "
                "is known of how well it does later."
            )
        dropped = len(matrix.names) - len(features)
        if dropped:
            notes.append(f"{dropped} of {len(matrix.names)} features said nothing new.")
        if self.course.task != "number":
            counts = np.bincount(matrix.labels.astype(np.int64), minlength=len(matrix.classes))
            words = class_words(matrix.classes)
            rare = [w for w, n in zip(words, counts, strict=True) if n < LEAST_OF_A_CLASS]
            if rare:
                notes.append(f"Fewer than {LEAST_OF_A_CLASS} examples of: {', '.join(rare[:5])}.")
        return tuple(notes)


def class_words(classes: tuple[str, ...]) -> tuple[str, ...]:
    """Truths are called yes and no among people."""
    return ("no", "yes") if classes == TRUTHS else classes


def _shown(course: Course, said: Said) -> float:
    """The share of right answers, or the mean absolute error."""
    if course.task == "number":
        return float(losses("number", said.truth, said.answers).mean())
    return float((said.answers.argmax(axis=1) == said.truth).mean())


def _offsets(errors: Reals) -> tuple[float, float] | None:
    """Between which errors a new one lies with COVERAGE, if it is drawn like these: the ranks of
    split conformal prediction (Lei et al., Journal of the American Statistical Association 113,
    2018, theorem 2.2), one for each side."""
    cut = math.floor((len(errors) + 1) * (1 - COVERAGE) / 2)
    if cut < 1:
        return None
    ordered = np.sort(errors)
    return float(ordered[cut - 1]), float(ordered[len(errors) - cut])
