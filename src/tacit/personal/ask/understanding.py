"""From a question to the problem it asks: the best reading, others near it, and how sure.

Nothing is trained here and nothing is looked up anywhere: the person sees what was understood
before anything is computed (AnonML 9.3.1, the third application).
"""

from __future__ import annotations

import datetime
from collections.abc import Mapping
from dataclasses import dataclass

from tacit.errors import UsageError
from tacit.personal.ask.grammar import sentence_of
from tacit.personal.ask.lexicon import Lexicon, Values
from tacit.personal.ask.reading import Reading
from tacit.personal.ask.readings import readings
from tacit.personal.events import EventType

__all__ = ["AHEAD", "SURE", "Understanding", "understand"]

SURE = 0.6  # the least confidence to answer without asking back
AHEAD = 0.05  # and by how much the best reading must lead
FAINT = 0.25  # below this a reading is no better than none


@dataclass(frozen=True)
class Understanding:
    """What a question was understood to ask.

    reading       the best one, or None if nothing fits
    alternatives  up to three others, each complete
    examples      what could be asked of these events, if nothing fits
    why           what is in doubt, for people; empty if it is sure
    """

    question: str
    reading: Reading | None
    alternatives: tuple[Reading, ...]
    examples: tuple[str, ...]
    why: str

    @property
    def confidence(self) -> float:
        return self.reading.confidence if self.reading else 0.0

    @property
    def is_sure(self) -> bool:
        return self.reading is not None and not self.why

    @property
    def unknown(self) -> tuple[str, ...]:
        """Words that mean nothing here."""
        return self.reading.unknown if self.reading else ()

    def in_words(self) -> str:
        """What was understood, what is in doubt, and what else it may be."""
        if self.reading is None:
            could = "\n".join(f"  {example}" for example in self.examples)
            return f"{self.why} You could ask:\n{could}" if could else self.why
        if self.is_sure:
            return self.reading.in_words()
        ways = [self.reading, *self.alternatives]
        listed = "\n".join(f"  {n}. {way.in_words()}" for n, way in enumerate(ways, 1))
        return f"{self.why} Did you mean:\n{listed}"


def understand(
    question: str, catalogue: Mapping[str, EventType], values: Values, now: datetime.datetime
) -> Understanding:
    """What is asked.

    catalogue  the types of events that the person has
    values     type, field → the frequent values of a category
    now        the moment of asking, in the person's own time zone
    """
    if now.tzinfo is None:
        raise UsageError("`now` needs a time zone: the person's own, so that tomorrow has a day.")
    lexicon = Lexicon(catalogue, values)
    sentence = sentence_of(question, lexicon, now)
    examples = _examples(catalogue)
    if sentence.is_past:
        why = "That asks about what has been; questions here are about what is to come."
        return Understanding(question, None, (), examples, why)
    found = [
        reading
        for reading in readings(question, sentence, catalogue, lexicon, now)
        if reading.confidence >= FAINT
    ]
    if not found:
        return Understanding(question, None, (), examples, _nothing(catalogue))
    return Understanding(question, found[0], tuple(found[1:]), (), _doubt(found))


def _doubt(found: list[Reading]) -> str:
    """What keeps it from being sure, in one sentence; empty if nothing does."""
    best = found[0]
    if best.unknown:
        return f"These words mean nothing here: {', '.join(dict.fromkeys(best.unknown))}."
    if best.target.assumed and best.confidence < SURE:
        return "Something had to be guessed."
    if best.confidence < SURE:
        return "The question was understood only in part."
    if len(found) > 1 and best.confidence - found[1].confidence < AHEAD:
        return "The question can be understood in more than one way."
    return ""


def _nothing(catalogue: Mapping[str, EventType]) -> str:
    if not catalogue:
        return "There are no events yet to ask about: import some first (`tacit me import`)."
    known = ", ".join(sorted(name for name, kind in catalogue.items() if not kind.static))
    return f"Nothing in the question fits the events you have ({known})."


def _examples(catalogue: Mapping[str, EventType]) -> tuple[str, ...]:
    """A question or two for each of a few types, each of which is understood."""
    made: list[str] = []
    for name, kind in sorted(catalogue.items()):
        if kind.static:
            continue
        word = name.replace("_", " ")
        made.append(f"How likely is a {word} tomorrow?")
        fields = [(f.replace("_", " "), sort) for f, sort in kind.fields.items()]
        made += [f"Will my next {word} be {field}?" for field, sort in fields if sort == "boolean"][
            :1
        ]
        made += [
            f"What will the {field} of my next {word} be?"
            for field, sort in fields
            if sort == "number"
        ][:1]
        if len(made) >= 6:
            break
    return tuple(made[:6])
