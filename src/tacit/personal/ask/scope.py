"""What the words of a clause mean if it speaks of events of one type."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

from tacit.personal.ask.comparisons import Comparison
from tacit.personal.ask.expressions import Condition
from tacit.personal.ask.grammar import Clause
from tacit.personal.ask.lexicon import Hit, Lexicon
from tacit.personal.ask.vocabulary import COUNTERS, MEASURES, PREPOSITIONS, UNITS
from tacit.personal.ask.words import Token, base_forms
from tacit.personal.events import EventType, Kind

__all__ = ["Measured", "Scope"]

_ONLY = 0.8  # no word names the field, but there is only this one
_BASES = {"duration": "seconds", "distance": "metres"}


@dataclass(frozen=True)
class Measured:
    """A comparison on a number field, in the field's own unit; without a field, on a count."""

    field: str
    operator: str
    number: float
    fit: float
    assumed: str = ""


@dataclass(frozen=True)
class Scope:
    clause: Clause
    kind: EventType
    lexicon: Lexicon

    @cached_property
    def hits(self) -> tuple[Hit, ...]:
        return tuple(hit for hit in self.clause.hits if hit.meaning.type == self.kind.name)

    @cached_property
    def named(self) -> Hit | None:
        """The word that names the type itself."""
        return max((h for h in self.hits if h.meaning.what == "type"), key=_fit, default=None)

    @property
    def is_single(self) -> bool:
        """One event is spoken of: `my next ride`; but not in `a pipe burst`, of one pipe."""
        if self.named is None:
            return False
        things = {p for hit in self.fields("category").values() for p in hit.places}
        return self.clause.is_single(self.named, things - self.named.places)

    def describes(self, places: frozenset[int]) -> bool:
        """Whether these words stand right before the name: `an important mail`."""
        return self.named is not None and max(places) + 1 == min(self.named.places)

    @property
    def has_next(self) -> bool:
        return any(token.norm == "next" for token in self.clause.tokens)

    def fields(self, *kinds: Kind) -> dict[str, Hit]:
        """Fields of these kinds that words name, each with its best word; best first.

        The name of the type may stand for a number (`spend` for payment.amount), but not for a
        truth or a category: whoever speaks of sleep does not mean naps alone.
        """
        named = self.named.places if self.named else frozenset()
        found: dict[str, Hit] = {}
        for hit in sorted(self.hits, key=_fit, reverse=True):
            field = hit.meaning.field
            if hit.meaning.what != "field" or self.kind.fields[field] not in kinds:
                continue
            if self.kind.fields[field] == "number" or not hit.places & named:
                found.setdefault(field, hit)
        return found

    def by_measure(self, measure: str) -> dict[str, float]:
        """Number fields for `how long`, `francs` and the like."""
        if not measure:
            return {}
        hits = self.lexicon.hits([Token(measure, measure, 0)])
        found = {
            h.meaning.field: h.fit
            for h in sorted(hits, key=_fit)
            if h.meaning.type == self.kind.name and h.meaning.what == "field"
        }
        return {
            field: fit
            for field, fit in sorted(found.items(), key=lambda f: -f[1])
            if self.kind.fields[field] == "number"
        }

    @cached_property
    def counter(self) -> str:
        """The number field that counts what its type is called: steps.count; empty if none."""
        return self._called(COUNTERS)

    @cached_property
    def measure(self) -> str:
        """The number field that says how much of it there was: payment.amount; empty if none."""
        return self.counter or self._called(MEASURES)

    def _called(self, names: tuple[str, ...]) -> str:
        numbers = [field for field, kind in self.kind.fields.items() if kind == "number"]
        same = [field for field in numbers if base_forms(field) & base_forms(self.kind.name)]
        listed = [field for name in names for field in numbers if name in field.split("_")]
        return next(iter([*same, *listed]), "")

    @cached_property
    def only_number(self) -> str:
        numbers = [field for field, kind in self.kind.fields.items() if kind == "number"]
        return numbers[0] if len(numbers) == 1 else ""

    # ── conditions ──

    @cached_property
    def values(self) -> tuple[Hit, ...]:
        """Values that words name: the longest words first, each word once, by its best field."""
        taken: set[int] = set(self.named.places) if self.named else set()
        chosen: list[Hit] = []
        hits = [hit for hit in self.hits if hit.meaning.what == "value"]
        for hit in sorted(
            hits, key=lambda h: (-len(h.places), -self._with_hint(h), h.meaning.field)
        ):
            if not hit.places & taken:
                taken |= hit.places
                chosen.append(hit)
        return tuple(chosen)

    def rivals(self, hit: Hit) -> list[Hit]:
        """The same words as values of other fields, where nothing tells them apart."""
        return [
            other
            for other in self.hits
            if other.meaning.what == "value"
            and other.places == hit.places
            and other.meaning.field != hit.meaning.field
            and self._with_hint(other) == self._with_hint(hit)
        ]

    def _with_hint(self, hit: Hit) -> float:
        """A preposition before it may say which field is meant: to the airport."""
        first = min(hit.places)
        before = [token.norm for token in self.clause.tokens[max(0, first - 2) : first]]
        parts = set(hit.meaning.field.split("_"))
        return hit.fit + 0.05 * any(parts & set(PREPOSITIONS.get(word, ())) for word in before)

    # ── comparisons ──

    def measured(self, comparison: Comparison, counts: bool = True) -> Iterator[Measured]:
        """What a comparison may be about: the noun after it, its unit, any field, the events."""
        operator = comparison.operator
        for field, fit in self._fields_of(comparison).items():
            if field or counts:
                number, assumed = self._in_unit(field, comparison)
                sure = fit * (_ONLY if assumed else 1)
                yield Measured(field, operator, number, sure, assumed)

    def condition(self, comparison: Comparison) -> Condition | None:
        best = max(self.measured(comparison, counts=False), key=lambda m: m.fit, default=None)
        return Condition(best.field, best.operator, best.number) if best else None

    def _fields_of(self, comparison: Comparison) -> dict[str, float]:
        """Field → fit; the field is empty where events are counted."""
        found: dict[str, float] = {}
        nouns = [
            h for h in self.hits if comparison.noun is not None and comparison.noun in h.places
        ]
        for hit in sorted(nouns, key=_fit, reverse=True):
            field = hit.meaning.field
            if hit.meaning.what == "type":
                found.setdefault(self.counter, hit.fit)
            elif hit.meaning.what == "field" and self.kind.fields[field] == "number":
                found.setdefault(field, hit.fit)
        if not found and comparison.unit:
            found |= self.by_measure(UNITS[comparison.unit][0])
        if not found:
            found |= {field: hit.fit for field, hit in self.fields("number").items()}
        if not found and (comparison.unit or self.named) and self.only_number:
            found[self.only_number] = _ONLY
        return found

    def _in_unit(self, field: str, comparison: Comparison) -> tuple[float, str]:
        """The number in the field's unit, as its name says it; else the base unit is assumed."""
        measure, factor = UNITS.get(comparison.unit, ("", 1.0))
        if measure not in _BASES:
            return comparison.number, ""
        for part in reversed(field.split("_")):
            for form in sorted(base_forms(part)):
                if UNITS.get(form, ("", 1))[0] == measure:
                    return float(f"{comparison.number * factor / UNITS[form][1]:.10g}"), ""
        said = f"`{field}` is taken to be in {_BASES[measure]}, since its name does not say."
        return comparison.number * factor, said


def _fit(hit: Hit) -> float:
    return hit.fit
