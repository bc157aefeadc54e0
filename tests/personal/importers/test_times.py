"""Times are read alike one by one and by the column, and only where they are times."""

from __future__ import annotations

import datetime
from zoneinfo import ZoneInfo

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tacit.errors import InputError
from tacit.personal.importers.naming import field_names, plain_name
from tacit.personal.importers.times import Form, form_among, forms_of, instant, instants

UTC = ZoneInfo("UTC")
MOMENTS = st.datetimes(
    datetime.datetime(1974, 1, 1), datetime.datetime(2099, 1, 1), timezones=st.just(datetime.UTC)
)
PATTERNS: dict[str, Form] = {
    "%Y-%m-%dT%H:%M:%SZ": "iso",
    "%Y-%m-%d %H:%M:%S": "iso",
    "%Y-%m-%d %H:%M:%S.%f": "iso",
    "%Y-%m-%dT%H:%M:%S+00:00": "iso",
    "%Y-%m-%d %H:%M:%S +0000 UTC": "iso",
    "%d.%m.%Y %H:%M:%S": "dmy",
    "%d/%m/%Y %H:%M:%S": "dmy",
    "%m/%d/%Y %I:%M:%S %p": "mdy",
    "%m-%d-%Y %H:%M:%S": "mdy",
}


@given(st.lists(MOMENTS, min_size=1, max_size=5), st.sampled_from(sorted(PATTERNS)))
def test_what_is_written_is_read_back(times: list[datetime.datetime], pattern: str) -> None:
    form = PATTERNS[pattern]
    whole = times if "%f" in pattern else [time.replace(microsecond=0) for time in times]
    texts = [time.strftime(pattern) for time in whole]
    assert form in forms_of(texts)
    assert [instant(text, form, UTC) for text in texts] == whole
    assert instants(pa.array(texts), form, UTC).to_pylist() == whole


WRITTEN = (
    "2024-01-01T10:00:00Z",
    "2024-01-01 10:00:00.123",
    "0001-01-01T1000+02:00",
    "31.12.2024 10:00",
    "1/2/2024 9:05 PM",
    "31/12/24",
    "1700000000",
    "1700000000.5",
    "9999999999999999",
)
LETTERS = "0123456789./-:T Z+PM,"


@st.composite
def almost_times(draw: st.DrawFn) -> str:
    """A time with a letter or two put in, taken out or changed."""
    text = draw(st.sampled_from(WRITTEN))
    for _ in range(draw(st.integers(0, 2))):
        at = draw(st.integers(0, len(text)))
        kept = draw(st.integers(0, 1))
        text = text[:at] + draw(st.sampled_from(["", *LETTERS])) + text[at + kept :]
    return text


@given(
    st.lists(st.none() | almost_times(), max_size=3),
    st.sampled_from(["iso", "dmy", "mdy", "seconds", "milliseconds", "microseconds"]),
)
def test_a_column_reads_as_its_texts_do(texts: list[str | None], form: Form) -> None:
    alone = [None if text is None else instant(text, form, UTC) for text in texts]
    column = instants(pa.array(texts, pa.string()), form, UTC).to_pylist()
    for text, one, two in zip(texts, alone, column, strict=True):
        assert one == two, text


@pytest.mark.parametrize(
    "text",
    [
        "2024-02-30",
        "31.02.2024",
        "24:00",
        "2024-13-01",
        "0000-01-01",
        "32/01/2024",
        "1/1/2024 25:00",
        "1/1/2024 0:30 PM",
        "1700",
        "99999999999999999999",
        "٢٠٢٤-٠١-٠١",
        "12",
        "",
    ],
)
def test_what_is_no_time_has_no_form(text: str) -> None:
    assert forms_of([text]) == set()


def test_one_value_can_tell_days_from_months() -> None:
    assert forms_of(["03/04/2024"]) == {"dmy", "mdy"}
    assert forms_of(["03/04/2024", "13/04/2024"]) == {"dmy"}
    assert form_among(["03/04/2024", "rubbish", "04/13/2024"], None, "t") == "mdy"
    assert form_among(["03/04/2024"], "dmy", "t") == "dmy"
    assert form_among(["rubbish"], None, "t") is None
    with pytest.raises(InputError, match="option order"):
        form_among(["03/04/2024"], None, "t")


def test_local_times_are_of_their_zone() -> None:
    paris = ZoneInfo("Europe/Paris")
    expected = datetime.datetime(2024, 7, 1, 8, tzinfo=datetime.UTC)
    assert instant("2024-07-01 10:00", "iso", paris) == expected
    assert instants(pa.array(["2024-07-01 10:00"]), "iso", paris).to_pylist() == [expected]
    assert instants(pa.array(["1.7.2024 10:00"]), "dmy", paris).to_pylist() == [expected]


def test_names() -> None:
    assert plain_name("Fare (€)") == "fare"
    assert plain_name("Größe in cm") == "grosse_in_cm"
    assert plain_name("2nd try") == "n_2nd_try"
    assert plain_name("HTTPStatus") == "httpstatus"
    assert plain_name("日本") == ""
    assert field_names(["a", "A", "a_2", "", "time"]) == [
        "a",
        "a_2",
        "a_2_2",
        "column_4",
        "time_value",
    ]


@given(st.lists(st.text(max_size=90), max_size=12))
def test_names_are_names_and_each_once(headers: list[str]) -> None:
    names = field_names(headers)
    assert len(set(names)) == len(headers)
    from tacit.personal.events import EventType

    EventType(name="t", fields=dict.fromkeys(names, "text"))
