"""Problems as files: what is accepted, what is refused and why, the same bytes for the same one."""

from __future__ import annotations

import tomllib
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tacit.errors import InputError, Leakage
from tacit.personal.events import EventType
from tacit.personal.problems.problem import InstanceTerms, LabelTerms, Problem

RIDE = {
    "name": "ride-price",
    "question": "What will this ride cost?",
    "events": {
        "ride": {"pickup": "category", "price": "number", "quote": "number", "shared": "boolean"},
        "rain": {"city": "category", "millimetres": "number"},
        "person": {"born": "number"},
    },
    "static": ["person"],
    "instance": {"per": "event", "event": "ride", "known": ["pickup", "quote"]},
    "label": {"value": "own.price"},
    "features": {"list": ["own.pickup", "mean(ride.price, 28d)"]},
}


def document(**changes: Any) -> dict[str, Any]:
    """The ride's problem with some tables changed: `instance__by=[…]`; None takes a term away."""
    made: dict[str, Any] = tomllib.loads(Problem.from_dict(RIDE).to_toml())
    for path, value in changes.items():
        *tables, name = path.split("__")
        table = made
        for key in tables:
            table = table.setdefault(key, {})
        if value is None:
            table.pop(name, None)
        else:
            table[name] = value
    return made


def refused(**changes: Any) -> str:
    with pytest.raises(InputError) as caught:
        Problem.from_dict(document(**changes))
    return str(caught.value)


# ── the file ──


def test_the_file_reads_back_as_the_same_problem() -> None:
    problem = Problem.from_dict({**RIDE, "columns": {"usual price": "mean(ride.price)"}})
    text = problem.to_toml()
    assert Problem.from_dict(tomllib.loads(text)) == problem
    assert Problem.from_dict(tomllib.loads(text)).to_toml() == text


def test_the_order_of_events_and_fields_does_not_matter() -> None:
    events: Any = RIDE["events"]
    turned = {
        name: dict(reversed(list(fields.items())))
        for name, fields in reversed(list(events.items()))
    }
    one, other = Problem.from_dict(RIDE), Problem.from_dict({**RIDE, "events": turned})
    assert one.to_toml() == other.to_toml()
    assert one.digest == other.digest
    assert list(one.types) == list(other.types) == ["person", "rain", "ride"]


@pytest.mark.parametrize(
    "change",
    [
        {"name": "other"},
        {"question": "What did it cost?"},
        {"about": "more words"},
        {"static": []},
        {"events__rain__city": "text"},
        {"instance__lead": "1h"},
        {"instance__known": ["pickup"]},
        {"label__name": "price"},
        {"label__value": "own.price + 1"},
        {"features__list": ["mean(ride.price, 28d)", "own.pickup"]},
        {"features__depth": 1},
        {"columns": {"usual": "mean(ride.price)"}},
    ],
)
def test_every_part_is_in_the_digest_and_in_the_file(change: dict[str, Any]) -> None:
    original, changed = Problem.from_dict(RIDE), Problem.from_dict(document(**change))
    assert original.digest != changed.digest
    assert original.to_toml() != changed.to_toml()


def test_the_digest_depends_on_the_order_of_columns() -> None:
    first = document(columns={"a": "count(ride)", "b": "count(rain)"})
    second = document(columns={"b": "count(rain)", "a": "count(ride)"})
    assert Problem.from_dict(first).digest != Problem.from_dict(second).digest


def test_load_says_where(tmp_path: Path) -> None:
    path = tmp_path / "ride.toml"
    path.write_text(Problem.from_dict(RIDE).to_toml(), encoding="utf-8")
    assert Problem.load(path) == Problem.from_dict(RIDE)
    path.write_text(path.read_text() + "\n[extra]\n", encoding="utf-8")
    with pytest.raises(InputError, match=r"ride\.toml.*extra"):
        Problem.load(path)
    with pytest.raises(InputError, match="no such file"):
        Problem.load(tmp_path / "none.toml")


def test_another_format_is_refused() -> None:
    assert "tacit problem 1" in refused(format="tacit problem 2")


# ── what fits together ──


@pytest.mark.parametrize(
    ("changes", "says"),
    [
        ({"name": "Ride Price"}, "small letters"),
        ({"question": " "}, "sentence"),
        ({"question": "x" * 301}, "sentence"),
        ({"label__name": "the price"}, "small letters"),
        ({"events": {}}, "needs no events"),
        ({"events__ride__Price": "number"}, "cannot name"),
        ({"events__ride__price": "money"}, "money"),
        ({"static": ["snow"]}, "none of the needed events"),
        ({"static": ["person", "rain", "ride"]}, "at least one must happen"),
        ({"instance__per": "month"}, "month"),
        ({"instance__event": None}, "needs `event`"),
        ({"instance__event": "flight"}, "none of the needed events"),
        ({"instance__event": "person", "instance__known": []}, "static"),
        ({"instance__every": "1w"}, "`every` does not go with"),
        ({"instance__gap": "30m"}, "`gap` does not go with"),
        ({"instance__known": ["colour"]}, "no field of ride"),
        ({"instance__by": ["city"]}, "does not have all the fields"),
        ({"instance__by": ["pickup", "pickup"]}, "different fields"),
        ({"instance__cutoff": "soon"}, "cutoff"),
        ({"instance__cutoff": "2026-03-01"}, "does not go with"),
        ({"instance__lead": "1 day"}, "no length of time"),
        ({"instance__where": "colour = 3"}, "colour"),
        ({"instance__where": "price > 3) + count(rain"}, "expected"),
        ({"label__horizon": "0d"}, "longer than nothing"),
        ({"label__kind": "category"}, "is a number"),
        ({"label__kind": "boolean"}, "is a number"),
        ({"label__value": "own.colour"}, "colour"),
        ({"label__value": "last(flight.price)", "label__horizon": "7d"}, "flight"),
        ({"features__depth": 9}, "depth"),
        ({"features__most": 0}, "most"),
        ({"features__windows": ["0d"]}, "windows"),
        ({"features__windows": ["1y"]}, "no length of time"),
        ({"features__list": []}, "there are none"),
        ({"features__list": ["mean(ride.pickup)"]}, "pickup"),
        ({"features__list": ["mean(ride.colour)"]}, "colour"),
        ({"features__list": ["exec('x')"]}, "exec"),
        ({"columns": {"label": "count(ride)"}}, "other than the label"),
        ({"columns": {"": "count(ride)"}}, "column has a name"),
        ({"columns": {"a": "count(flight)"}}, "flight"),
        ({"instance__colour": "red"}, "colour"),
    ],
)
def test_what_does_not_fit_is_refused(changes: dict[str, Any], says: str) -> None:
    assert says in refused(**changes)


@pytest.mark.parametrize(
    ("instance", "says"),
    [
        ({"per": "window"}, "needs `every`"),
        ({"per": "window", "every": "0d"}, "longer than nothing"),
        ({"per": "window", "every": "7h"}, "does not fit the days"),
        ({"per": "window", "every": "36h"}, "does not fit the days"),
        ({"per": "window", "every": "1w", "where": "price > 3"}, "say of which type"),
        ({"per": "window", "every": "1w", "known": ["pickup"]}, "`known` does not go with"),
        ({"per": "window", "every": "1w", "cutoff": "7d"}, "beyond the window"),
        ({"per": "window", "every": "1w", "by": ["colour"]}, "no needed event"),
        ({"per": "session", "event": "ride"}, "needs `gap`"),
        ({"per": "group"}, "needs `by`"),
        ({"per": "group", "by": ["pickup"]}, "needs `cutoff`"),
        ({"per": "group", "by": ["pickup"], "cutoff": "2026-02-30"}, "no day of the calendar"),
        ({"per": "user"}, "needs `cutoff`"),
        ({"per": "user", "by": ["pickup"], "cutoff": "7d"}, 'Take per = "group"'),
    ],
)
def test_each_kind_of_instance_has_its_terms(instance: dict[str, Any], says: str) -> None:
    changes = {
        "instance": instance,
        "label": {"value": "count(ride)"},
        "features__list": ["count(rain)"],
    }
    assert says in refused(**changes)


def test_fields_that_tell_apart_are_of_one_kind() -> None:
    changes = {
        "events__rain__pickup": "number",
        "instance": {"per": "window", "every": "1d", "by": ["pickup"]},
        "label__value": "count(ride)",
        "features__list": ["count(rain)"],
    }
    assert "different kinds" in refused(**changes)
    times = {
        **changes,
        "events__rain__pickup": "time",
        "events__ride__pickup": "time",
    }
    assert "is a time" in refused(**times)


def test_what_is_needed_must_be_there() -> None:
    problem = Problem.from_dict(RIDE)
    there = dict(problem.types)
    problem.check_against(there)
    text = EventType(name="ride", fields={**there["ride"].fields, "pickup": "text"})
    problem.check_against({**there, "ride": text})  # a text will do for a category
    with pytest.raises(InputError, match=r"tacit me import"):
        problem.check_against({"ride": there["ride"]})
    less = EventType(name="ride", fields={"price": "number"})
    with pytest.raises(InputError, match=r"needs ride\.\w+"):
        problem.check_against({**there, "ride": less})
    happens = EventType(name="person", fields={"born": "number"})
    with pytest.raises(InputError, match="static"):
        problem.check_against({**there, "person": happens})


# ── seeing the answer ──


@pytest.mark.parametrize(
    "changes",
    [
        {"instance__known": ["pickup", "price"]},  # the label is known beforehand
        {"label__value": "hour(moment)"},  # … or no event's at all
        {"features__list": ["own.price"]},  # a feature reads the answer
        {"features__list": ["own.shared"]},  # … or what is known with it
        {"columns": {"price_now": "log(own.price)"}},
        {"instance__cutoff": "end"},  # features see the event that is asked about
        {"instance__cutoff": "1h"},
        {"instance__cutoff": "1h", "label__horizon": "1d"},
        {"label__value": "mean(ride.price, 28d)"},  # what lies before the cut-off
        {"label__value": "count(ride)"},
        {"label__value": "count(ride, 14d)", "label__horizon": "7d"},
        {"label__value": "static(person.born)", "features__list": ["static(person.born) + 1"]},
        {
            "instance": {"per": "window", "every": "1w", "cutoff": "end"},
            "label__value": "count(ride)",
            "features__list": ["count(rain)"],
        },
    ],
)
def test_a_definition_that_sees_the_answer_is_refused(changes: dict[str, Any]) -> None:
    with pytest.raises(Leakage):
        Problem.from_dict(document(**changes))


@pytest.mark.parametrize(
    "changes",
    [
        {"label__value": "own.price > own.quote"},  # more than was known beforehand
        {"label__value": "count(ride) > 0", "label__horizon": "7d"},
        {
            "label__value": "count(ride) > 0",
            "label__horizon": "7d",
            "features__list": ["own.price"],  # the ride is over
        },
        {"label__value": "static(person.born)"},
        {"instance__lead": "1h"},
    ],
)
def test_what_only_looks_like_it_is_allowed(changes: dict[str, Any]) -> None:
    Problem.from_dict(document(**changes))


def test_an_own_event_after_the_lead_is_not_seen() -> None:
    changes = {
        "label": {"value": "count(ride) > 0", "horizon": "7d"},
        "instance__lead": "1h",
        "features__list": ["own.price"],
    }
    with pytest.raises(Leakage):
        Problem.from_dict(document(**changes))


def test_only_instances_per_event_have_an_event_of_their_own() -> None:
    changes = {
        "instance": {"per": "window", "every": "1w"},
        "label__value": "own.price",
        "features__list": ["count(rain)"],
    }
    assert "per event" in refused(**changes)


# ── strangers' files ──


@pytest.mark.parametrize(
    "text",
    [
        "x = " + "[" * 5000 + "]" * 5000,
        "a." * 5000 + "a = 1",
        "x = " + "9" * 6000,
        'name = "\\u202eevil"',
        'about = "\\u001b[31mred"',
        '"\\u001b[31m" = 1',
        'about = "' + "x" * 3000 + '"',
        "x = " + "[[[[[[[[[[1]]]]]]]]]]",
        "\x00",
        "name = 1",
        "instance = []",
        "",
    ],
)
def test_hostile_files_are_refused_without_being_shown(text: str, tmp_path: Path) -> None:
    path = tmp_path / "bad.toml"
    path.write_bytes(text.encode())
    with pytest.raises(InputError) as caught:
        Problem.load(path)
    assert str(caught.value).isprintable()
    assert len(str(caught.value)) < 1000


def test_what_is_no_page_of_text_is_refused(tmp_path: Path) -> None:
    large = tmp_path / "large.toml"
    large.write_text("# " + "x" * 70_000)
    with pytest.raises(InputError, match="larger than 64 KiB"):
        Problem.load(large)
    with pytest.raises(InputError, match="no ordinary file"):
        Problem.load(tmp_path)
    broken = tmp_path / "broken.toml"
    broken.write_bytes(b"\xff\xfe")
    with pytest.raises(InputError, match="UTF-8"):
        Problem.load(broken)


@given(st.text(max_size=40))
def test_any_text_is_refused_or_kept(text: str) -> None:
    """Whatever stands in a problem, it is refused in plain words, or reads back as it was."""
    problem = None
    with suppress(InputError):
        problem = Problem(
            name="any",
            question=text,
            about=text,
            instance=InstanceTerms(per="event", event="ride"),
            label=LabelTerms(value="own.price"),
            events={"ride": {"price": "number"}},
            columns={text: "count(ride)"},
        )
    assert (problem is not None) == (bool(text.strip()) and text.isprintable() and text != "label")
    if problem is not None:
        assert Problem.from_dict(tomllib.loads(problem.to_toml())) == problem
        assert len(problem.digest) == 64
