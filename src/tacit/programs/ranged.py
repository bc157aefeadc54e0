"""A program whose columns' bounds are found first, under the same promise (ranges.md).

`ranged(program, schema)` is the program itself where all bounds are public, and a `Ranged` where
the schema says bounds = "private" of a feature or of the label. Its plan is the two rounds of the
search and then the program's own, so one calibration pays for all of them. Records travel with
plain numbers in those columns; every later round brings them to [−1, 1] by the ranges that its
state names, before the program looks at them: a normalisation, under which no record counts for
more.
"""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from dataclasses import asdict, dataclass, fields, make_dataclass, replace
from fractions import Fraction
from functools import cache
from typing import Any, TypeVar, get_type_hints

import numpy as np
from numpy.typing import NDArray

from tacit.data.encode import Encoded, Encoder
from tacit.data.schema import Column, Schema
from tacit.errors import InputError, InternalFault, SchemaError, TacitError
from tacit.privacy.bound import Norm
from tacit.privacy.promise import Promise
from tacit.programs.contribute import prepared
from tacit.programs.contributions import Contribution
from tacit.programs.prediction import Prediction
from tacit.programs.program import Plan, Program, Query, Stage, norm_for
from tacit.programs.ranged_view import RangedEncoder, View, blank
from tacit.programs.ranges import BLOCKS, Ranges, RangeState, searched_noise
from tacit.programs.reckoned import reckoned
from tacit.programs.states import varying

__all__ = ["PART", "Ranged", "more_noise", "ranged"]

M = TypeVar("M")
Reals = NDArray[np.float64]

# The search's part of the promise: of 1/σ² where noise is Gaussian, of ε where it is Laplacian.
PART = Fraction(3, 20)
LARGEST = 2.0**41  # of a bound


def ranged(program: Program[Any, M], schema: Schema, uniform: bool = False) -> Program[Any, M]:
    """The program as this schema needs it."""
    if not schema.private or isinstance(program, Ranged):
        return program
    return Ranged(program, uniform)


@dataclass(frozen=True, slots=True)
class Setup:
    """What follows from the study: nothing of it travels.

    first   the program's first state, with [−1, 1] in the place of every bound to be found
    """

    agreed: Schema
    promise: Promise
    first: Any
    view: View

    @property
    def search(self) -> Ranges:
        return Ranges(len(self.view.columns))


class Ranged(Program[Any, M]):
    """Finds the ranges of columns without public bounds, then runs the program.

    uniform   widen all features' ranges to one width, where distances between records matter: as
              estimators do. A study weighs columns by their widths, stated or found.
    """

    def __init__(self, program: Program[Any, M], uniform: bool = False) -> None:
        if program.name == "frequent-itemsets":
            raise SchemaError(
                "frequent itemsets are of categories and bins: give every number edges."
            )
        self.program, self.uniform = program, uniform
        self._setups: dict[tuple[str, str], Setup] = {}

    # ── what it is called: as the program; that ranges were found, the schema says ──

    @property
    def name(self) -> str:  # type: ignore[override]
        return self.program.name

    @property
    def written_name(self) -> str:
        return self.program.written_name

    @property
    def version(self) -> int:  # type: ignore[override]
        return self.program.version

    @property
    def promise_holds(self) -> bool:  # type: ignore[override]
        return self.program.promise_holds

    @property
    def may_remark(self) -> tuple[str, ...]:  # type: ignore[override]
        return self.program.may_remark

    @property
    def models(self) -> tuple[type[Any], ...]:  # type: ignore[override]
        return self.program.models

    @property
    def states(self) -> tuple[type[Any], ...]:  # type: ignore[override]
        return tuple(_joined(kind) for kind in self.program.states)  # type: ignore[arg-type]

    def settings(self) -> dict[str, Any]:
        return self.program.settings()

    def encoder(self, schema: Schema) -> Encoder:
        if not schema.private:
            return self.program.encoder(schema)
        return RangedEncoder(schema, self.program, self.uniform)

    def finds_bounds(self, schema: Schema) -> tuple[Column, ...]:
        """With `uniform` also stated ones, which are widened."""
        return self.view(schema).columns if schema.private else ()

    def predict(self, model: Any, X: Reals) -> Prediction | None:
        return self.program.predict(model, X)

    def remarks(self, model: Any) -> tuple[str, ...]:
        return self.program.remarks(model)

    # ── the rounds ──

    def init(self, schema: Schema, promise: Promise) -> Any:
        texts = _text(schema), _promise_text(promise)
        setup = self._setups[texts] = self._set_up(schema, promise)
        kind = _joined(type(setup.first))  # type: ignore[arg-type]  # classes are hashable
        before = setup.search.before(norm_for(promise))
        own = {**_fields(before), **_fields(setup.first)}
        draft = kind(**own, ranged_schema=texts[0], ranged_promise=texts[1])
        plan = Plan(tuple(self.plan(draft)))
        noise = searched_noise(promise, plan.part(min(1, plan.windows)))
        return replace(draft, range_noise=noise)

    def plan(self, first: Any) -> Sequence[Stage]:
        setup = self._setup(first)
        inner = list(self.program.plan(setup.first))
        window = inner[0].window  # the ranges are those of the first window's records
        own = [block for s in inner if s.window == window for block in s.query.blocks]
        weight = sum((block.weight for block in own), Fraction(0))
        stages = setup.search.stages(Norm(first.range_norm), weight * PART / (1 - PART))
        return [*(replace(stage, window=window) for stage in stages), *inner]

    def windowed(self, windows: int) -> Program[Any, M]:
        """Ranges are found in the first window, and stay."""
        return Ranged(self.program.windowed(windows), self.uniform)

    def admit(self, state: Any) -> None:
        try:
            inner = self._inner(state)
        except (TacitError, ValueError, TypeError, ArithmeticError):
            raise InputError("this state's fields contradict one another.") from None
        self.program.admit(inner)

    def asked(self, state: Any, query: Query) -> Query | None:
        return query if _searches(query) else self.program.asked(self._inner(state), query)

    def seen_under(self, state: Any, query: Query) -> bytes | None:
        if _searches(query):
            return None
        ends: Reals = np.concatenate([state.range_low, state.range_high])
        return ends.tobytes()

    def seen(self, batch: Encoded, state: Any) -> Encoded:
        setup = self._setup(state)
        seen = setup.view.seen(batch, state.range_low, state.range_high)
        return prepared(self.program, seen, setup.first).batch

    def map(
        self, batch: Encoded, state: Any, query: Query
    ) -> NDArray[np.float64] | Sequence[Contribution]:
        if not _searches(query):
            return self.program.map(batch, self._inner(state), query)
        setup = self._setup(state)
        plain = Encoded(setup.view.values(batch), None, batch.person)
        return setup.search.map(plain, _search(state), query)

    def reduce(self, total: Reals, state: Any) -> Any:
        setup = self._setup(state)
        if state.ranges_done < len(BLOCKS):
            found = setup.search.reduce(total, _search(state))
            if found.ranges_done == len(BLOCKS):
                found = self._settled(found, setup.view)
            return replace(state, **_fields(found))
        return replace(state, **_fields(self.program.reduce(total, self._inner(state))))

    def result(self, state: Any) -> M:
        """The program's, as if the schema had named these bounds from the start: what does not vary
        in its state follows from the schema, and what varies is in terms of [−1, 1]."""
        setup = self._setup(state)
        inner = self._inner(state)
        learned = self.learned_schema(setup.agreed, state)
        first = self.program.init(learned, _told(setup.promise))
        moved = {name: getattr(inner, name) for name in varying(type(inner))}
        return self.program.result(replace(first, **moved))

    def learned_schema(self, schema: Schema, state: Any) -> Schema:
        """The agreed schema with the ranges that a state names."""
        columns = self._setup(state).view.columns
        rows = zip(columns, state.range_low, state.range_high, state.range_found, strict=True)
        return schema.with_ranges(
            {c.name: (float(low), float(high), bool(known)) for c, low, high, known in rows}
        )

    # ── its parts ──

    def _inner(self, state: Any) -> Any:
        first = self._setup(state).first
        names = [f.name for f in fields(first)]
        return type(first)(**{name: getattr(state, name) for name in names})

    def _setup(self, state: Any) -> Setup:
        texts = state.ranged_schema, state.ranged_promise
        if texts not in self._setups:
            schema = Schema.from_dict(json.loads(texts[0]))
            self._setups[texts] = self._set_up(schema, Promise(**json.loads(texts[1])))
        return self._setups[texts]

    def _set_up(self, schema: Schema, promise: Promise) -> Setup:
        first = self.program.init(blank(schema), _told(promise))
        return Setup(schema, promise, first, self.view(schema))

    def view(self, schema: Schema) -> View:
        """How records are seen under ranges."""
        return View.of(self.program, schema, self.uniform)

    def _settled(self, found: RangeState, view: View) -> RangeState:
        """The ranges as bounds of these columns: stated ones as stated, whole numbers for integers,
        one width for all features where that is wanted."""
        low, high, known = found.range_low.copy(), found.range_high.copy(), found.range_found.copy()
        for at, column in enumerate(view.columns):
            if isinstance(column.bounds, tuple):
                low[at], high[at], known[at] = *column.bounds, True
        low, high = np.clip(low, -LARGEST, LARGEST), np.clip(high, -LARGEST, LARGEST)
        if self.uniform:
            low, high = _one_width(low, high, view.are_features)
        for at, column in enumerate(view.columns):
            if column.type == "integer":
                low[at], high[at] = math.floor(low[at]), math.ceil(high[at])
            if not low[at] < high[at]:
                low[at], high[at] = low[at] - 1.0, high[at] + 1.0
        return replace(found, range_low=low, range_high=high, range_found=known)


def _one_width(low: Reals, high: Reals, features: NDArray[np.bool_]) -> tuple[Reals, Reals]:
    middle, reach = (low + high) / 2, (high - low)[features].max(initial=0.0) / 2
    return np.where(features, middle - reach, low), np.where(features, middle + reach, high)


def _told(promise: Promise) -> Promise:
    """What the program reckons with: it has one part of the promise, the search another."""
    return reckoned(promise, more_noise(promise))


def more_noise(promise: Promise) -> float:
    """How many times as large a program's noise is as with public bounds."""
    left = float(1 - PART)
    return 1 / left if promise.delta == 0 else 1 / math.sqrt(left)


def _searches(query: Query) -> bool:
    return query.blocks[0].name in BLOCKS


# ── one flat state of two ──

_FIXED = {"ranged_schema": str, "ranged_promise": str}


@cache
def _joined(kind: type[Any]) -> type[Any]:
    """The search's state and the program's in one dataclass: states travel flat (states.py)."""
    search, own = get_type_hints(RangeState), get_type_hints(kind)
    hints = {
        **{f.name: search[f.name] for f in fields(RangeState)},
        **{f.name: own[f.name] for f in fields(kind)},
        **_FIXED,
    }
    if len(hints) < len(fields(RangeState)) + len(fields(kind)) + len(_FIXED):
        raise InternalFault(f"{kind.__name__} has a field that the search for ranges has too.")
    grows = tuple(getattr(kind, "grows", ()))
    varies = (*RangeState.varies, *sorted(varying(kind) - set(grows)))
    name = f"Ranged{kind.__name__}"
    return make_dataclass(
        name, list(hints.items()), frozen=True, namespace={"varies": varies, "grows": grows}
    )


def _fields(state: Any) -> dict[str, Any]:
    return {f.name: getattr(state, f.name) for f in fields(state)}


def _search(state: Any) -> RangeState:
    return RangeState(**{f.name: getattr(state, f.name) for f in fields(RangeState)})


def _text(schema: Schema) -> str:
    return json.dumps(schema.to_dict(), sort_keys=False)


def _promise_text(promise: Promise) -> str:
    return json.dumps(asdict(promise))
