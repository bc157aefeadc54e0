"""What crowds are asked to learn in benchmarks: people with one row each, and a public schema.

Every edge and every group of categories is knowledge that anyone may have without seeing the data:

    Adult   ages of the labour statistics' groups; 35 hours are full time, above 40 is overtime;
            years of schooling up to a school-leaving certificate, college, bachelor, master; any
            capital gain or loss at all, and gains of 5,000 and more; occupations, kinds of work and
            marital states in the census's own larger groups; countries: the United States or not.
            Left out: fnlwgt (how many people a record stands for) and education (years, again)
    OULAD   enrolments that have not been given up by day 60: passed in the end, or not? Each
            student's first enrolment alone: one person, one row. Known on day 60: who they are,
            when they registered, clicks before the course, and the number and mean of the marks
            of what was handed in by then. Neither date_unregistration, which gives withdrawal away,
            nor any later mark is read. Withdrawn without a date: not known when, left out
    KDD     what an enrolment did in the first 14 of 30 days: does it drop out? Its label looks at
            days 31 to 40. An enrolment stands for a person here: who is who is not published

A number has edges, which tacit's plan uses, and bounds, from which AnonML's plan goes on by itself.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any, NamedTuple

import msgspec
import numpy as np
from numpy.typing import NDArray

from tacit.data import Batch, Column, Schema, load_dataset, read_batches

Say = Callable[[str], None]
Reals = NDArray[np.float64]
DAY, DAYS = 60, 14  # what is known when: of OULAD, of KDD Cup 2015
HELD_OUT = 3  # every third person is kept for judging, where no test part was published


class Problem(NamedTuple):
    name: str
    schema: Schema
    train: Batch
    test: Batch


def problems(say: Say) -> list[Problem]:
    return [adult(say), oulad(say), kddcup(say)]


def without_edges(schema: Schema) -> Schema:
    """With bounds alone: where to cut a number is still to be found."""
    columns = (
        msgspec.structs.replace(column, edges=None) if column.is_number else column
        for column in schema.columns
    )
    return msgspec.structs.replace(schema, columns=tuple(columns))


def _number(name: str, low: float, high: float, *edges: float) -> Column:
    return Column(name=name, type="integer", bounds=(low, high), edges=edges)


def _grouped(name: str, other: str, groups: Mapping[str, Iterable[str]]) -> Column:
    """A category in larger groups; what is missing or in no group is `other`."""
    aliases = {value: group for group, values in groups.items() for value in values}
    return Column(
        name=name,
        type="category",
        categories=(*groups, other),
        aliases=aliases,
        when_missing="fill",
        fill=other,
    )


# ── Adult ──

GROUPS = {
    "workclass": {
        "employed": ["Private"],
        "own company": ["Self-emp-inc"],
        "self-employed": ["Self-emp-not-inc"],
        "government": ["Federal-gov", "Local-gov", "State-gov"],
        "none": ["Without-pay", "Never-worked"],
    },
    "marital-status": {
        "married": ["Married-civ-spouse", "Married-AF-spouse"],
        "never": ["Never-married"],
        "was": ["Divorced", "Separated", "Widowed", "Married-spouse-absent"],
    },
    "occupation": {
        "managers, professions": ["Exec-managerial", "Prof-specialty"],
        "technical, sales, office": ["Tech-support", "Sales", "Adm-clerical"],
        "craft, operators": [
            "Craft-repair",
            "Machine-op-inspct",
            "Transport-moving",
            "Handlers-cleaners",
        ],
        "service, farm": ["Other-service", "Priv-house-serv", "Protective-serv", "Armed-Forces"],
    },
    "relationship": {
        "spouse": ["Husband", "Wife"],
        "child": ["Own-child"],
        "other": ["Not-in-family", "Other-relative", "Unmarried"],
    },
    "race": {
        "white": ["White"],
        "all others": ["Asian-Pac-Islander", "Amer-Indian-Eskimo", "Other", "Black"],
    },
}
NUMBERS = (
    _number("age", 0, 100, 25, 35, 45, 55, 65),
    _number("education-num", 1, 16, 9, 10, 13, 14),
    _number("capital-gain", 0, 99_999, 1, 5_000),
    _number("capital-loss", 0, 5_000, 1),
    _number("hours-per-week", 0, 100, 35, 41, 50),
)
LEFT_OUT = ("fnlwgt", "education")


def adult(say: Say) -> Problem:
    data = load_dataset("adult", say=say)
    schema = _adult_schema(data.schema)
    train, test = (
        Batch.concat(list(read_batches(_known(table, schema), schema)))
        for table in (data.train, data.test)
    )
    return Problem("Adult", schema, train, test)


def _adult_schema(published: Schema) -> Schema:
    chosen = {column.name: column for column in NUMBERS}
    for name, groups in GROUPS.items():
        *named, last = groups
        chosen[name] = _grouped(name, last, {group: groups[group] for group in named})
    chosen["native-country"] = _grouped("native-country", "abroad", {"US": ["United-States"]})
    columns = []
    for column in published.columns:
        found = chosen.get(column.name, column)
        if column.name in LEFT_OUT:
            found = msgspec.structs.replace(column, role="ignore")
        columns.append(found)
    return Schema(columns=tuple(columns))


def _known(table: Any, schema: Schema) -> Any:
    """The table with what is in no group as missing: `_grouped` says what that means."""
    import pyarrow as pa
    import pyarrow.compute as pc

    for column in schema.features:
        if column.aliases:
            values = pa.array(list(column.aliases), pa.string())
            place = table.column_names.index(column.name)
            kept = pc.if_else(
                pc.is_in(table[column.name], value_set=values), table[column.name], None
            )
            table = table.set_column(place, column.name, kept)
    return table


# ── course drop-out ──


def oulad(say: Say) -> Problem:
    data = load_dataset("oulad", say=say)
    people = _Enrolments(data.train)
    registered = people.dates(data.tables["registrations"], "date_registration")
    left = people.dates(data.tables["registrations"], "date_unregistration")
    marks, handed_in = people.marks(data.tables["assessments"], data.tables["scores"])
    clicks = people.dates(data.tables["pre_course_clicks"], "pre_course_clicks")
    result = np.array(data.train["final_result"].to_pylist())
    there = ~(left <= DAY) & ~(np.isnan(left) & (result == "Withdrawn")) & people.first
    table = {
        **{name: data.train[name].to_pylist() for name in PERSONAL},
        "registered": np.nan_to_num(registered, nan=0.0),
        "clicks": np.nan_to_num(clicks, nan=0.0),
        "handed_in": handed_in,
        "mark": np.where(handed_in > 0, marks / np.maximum(handed_in, 1), -1.0).round(),
        "passed": np.isin(result, ("Pass", "Distinction")),
    }
    personal = [data.schema.column(name) for name in PERSONAL]
    schema = Schema(columns=(*map(_oulad_column, personal), *OULAD_NUMBERS, PASSED))
    return _halved("OULAD", table, schema, np.flatnonzero(there))


PERSONAL = (
    "code_module",
    "gender",
    "highest_education",
    "imd_band",
    "age_band",
    "num_of_prev_attempts",
    "studied_credits",
    "disability",
)
OULAD_NUMBERS = (
    _number("registered", -365, 60, -90, -45, -15),
    _number("clicks", 0, 10_000, 1, 25, 75, 150),
    _number("handed_in", 0, 20, 1, 2, 3),
    _number("mark", -1, 100, 0, 40, 60, 75, 90),
)
PASSED = Column(name="passed", type="boolean", role="label")


def _oulad_column(column: Column) -> Column:
    if column.name == "num_of_prev_attempts":
        return _number(column.name, 0, 10, 1, 2)
    if column.name == "studied_credits":
        return _number(column.name, 0, 500, 61, 91, 121)
    return column


class _Enrolments:
    """Enrolments by module, presentation and student."""

    def __init__(self, table: Any) -> None:
        keys = self._keys(table)
        self.places = {key: place for place, key in enumerate(keys)}
        # By presentation: 2013B is before 2013J is before 2014B.
        order = sorted(range(len(keys)), key=lambda place: (keys[place][1], place))
        firsts = {keys[place][2]: place for place in reversed(order)}
        self.first = np.isin(np.arange(len(keys)), list(firsts.values()))

    def dates(self, table: Any, name: str) -> Reals:
        """One number for each enrolment; NaN where there is none."""
        found = np.full(len(self.places), np.nan)
        for key, value in zip(self._keys(table), table[name].to_pylist(), strict=True):
            if value is not None:
                found[self.places[key]] = value
        return found

    def marks(self, assessments: Any, scores: Any) -> tuple[Reals, NDArray[np.int64]]:
        """The sum and number of the marks of what each enrolment handed in by the day."""
        names = ("id_assessment", "code_module", "code_presentation")
        of = {
            a: rest for a, *rest in zip(*(assessments[n].to_pylist() for n in names), strict=True)
        }
        total = np.zeros(len(self.places))
        number = np.zeros(len(self.places), dtype=np.int64)
        for row in scores.to_pylist():
            place = self.places.get((*of[row["id_assessment"]], row["id_student"]))
            fresh = row["date_submitted"] <= DAY and not row["is_banked"]
            if place is not None and fresh and row["score"] is not None:
                total[place] += row["score"]
                number[place] += 1
        return total, number

    @staticmethod
    def _keys(table: Any) -> list[tuple[str, str, int]]:
        names = ("code_module", "code_presentation", "id_student")
        columns = [table[name].to_pylist() for name in names]
        return [(a, b, int(c)) for a, b, c in zip(*columns, strict=True)]


EVENTS = ("access", "discussion", "navigate", "page_close", "problem", "video", "wiki")


def kddcup(say: Say) -> Problem:
    data = load_dataset("kddcup2015", say=say)
    ids = data.train["enrollment_id"].to_numpy()
    events = data.tables["daily_events"]
    day = events["day"].to_numpy()
    early = day < DAYS
    order = np.argsort(ids)
    who = order[np.searchsorted(ids[order], events["enrollment_id"].to_numpy())][early]

    def summed(values: Any) -> NDArray[np.int64]:
        return np.bincount(who, values, minlength=len(ids)).astype(np.int64)

    last = np.full(len(ids), -1)
    np.maximum.at(last, who, day[early])
    table = {
        **{name: summed(events[name].to_numpy()[early]) for name in EVENTS},
        "days": summed(np.ones(len(who))),
        "last_day": last,
        "left": np.array(data.train["label"].to_pylist()) == "1",
    }
    counts = [_number(name, 0, 100_000, 1, 10, 50) for name in EVENTS]
    days = (_number("days", 0, DAYS, 2, 4, 7), _number("last_day", -1, DAYS, 0, DAYS // 2))
    label = Column(name="left", type="boolean", role="label")
    return _halved("KDD Cup", table, Schema(columns=(*counts, *days, label)), np.arange(len(ids)))


def _halved(name: str, table: Mapping[str, Any], schema: Schema, kept: NDArray[Any]) -> Problem:
    """A problem whose people are divided at random, always alike, to learn from and to judge by."""
    drawn = np.random.default_rng(0).permutation(kept)
    parts = []
    for places in (drawn[len(drawn) // HELD_OUT :], drawn[: len(drawn) // HELD_OUT]):
        columns = {key: [values[i] for i in places] for key, values in table.items()}
        parts.append(Batch.concat(list(read_batches(columns, schema))))
    return Problem(name, schema, *parts)
