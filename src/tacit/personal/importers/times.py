"""Times in the forms that apps write them.

    iso            2024-03-31T09:05:00Z, 2024-03-31 09:05, 2024-03-31, with or without a zone
    dmy, mdy       31.03.2024, 31/03/2024 09:05, 3/31/24, 03/31/2024 9:05 PM
    seconds, milliseconds, microseconds        since 1970

A column of 03/04/2024 fits dmy and mdy alike: nobody can tell, and the user is asked.
"""

from __future__ import annotations

import datetime
import re
from collections.abc import Iterable
from typing import TYPE_CHECKING, Literal
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from tacit.errors import InputError, UsageError

if TYPE_CHECKING:
    import pyarrow as pa

__all__ = [
    "EPOCHS",
    "Form",
    "form_among",
    "forms_of",
    "instant",
    "instants",
    "order_option",
    "zone_option",
]

Form = Literal["iso", "dmy", "mdy", "seconds", "milliseconds", "microseconds"]
EPOCHS: dict[Form, int] = {"seconds": 1_000_000, "milliseconds": 1000, "microseconds": 1}

ISO = re.compile(
    r"\d{4}-\d\d-\d\d([T ]\d\d(:?\d\d(:?\d\d([.,]\d{1,9})?)?)?"
    r"( ?(Z|UTC|[+-]\d\d(:?\d\d)?( UTC)?))?)?",
    re.ASCII,
)
PARTS = re.compile(
    r"(\d{1,2})([./-])(\d{1,2})\2(\d{4}|\d\d)"
    r"(?:,?[T ]+(\d{1,2}):(\d\d)(?::(\d\d)(?:[.,]\d{1,9})?)?(?: ?([AaPp])\.?[Mm]\.?)?)?",
    re.ASCII,
)
# The same without two digits for a year, as Arrow's expressions have it: no looking back.
SIMPLE = r"^(\d{1,2}\.\d{1,2}\.|\d{1,2}/\d{1,2}/|\d{1,2}-\d{1,2}-)\d{4}([ T]\d\d:\d\d(:\d\d)?)?$"
WHOLE = re.compile(r"\d{8,16}(\.\d{1,9})?", re.ASCII)
EARLIEST, LATEST = 100_000_000, 4_102_444_800  # 1973 and 2100: what seconds since 1970 may be
CENTURY = 70  # two digits below this are 20xx
DAY = 86_400_000_000
YEAR_1 = -62_135_596_800_000_000  # microseconds: Arrow knows the year 0, Python does not
YEAR_9999 = 253_402_300_799_999_999
EPOCH = datetime.datetime(1970, 1, 1, tzinfo=datetime.UTC)


def forms_of(values: Iterable[str]) -> set[Form]:
    """The forms that every one of the values has; none if there are no values."""
    forms: set[Form] | None = None
    for value in values:
        fitting = _forms(value)
        forms = fitting if forms is None else forms & fitting
        if not forms:
            return set()
    return forms or set()


def form_among(values: Iterable[str], order: str | None, where: str) -> Form | None:
    """The form that the times among the values share; None if there are no times.

    What is no time, or differs from those before it, is passed over: it will be damaged.
    """
    shared: set[Form] = set()
    for value in values:
        here = _forms(value)
        shared = (shared & here or shared) if shared else here
    chosen = order_option(order)
    if chosen in shared:
        return chosen
    if len(shared) > 1:
        raise InputError(
            f"{where}: 03/04 may be 3 April or 4 March. Say which with the option order: dmy (day "
            "first) or mdy (month first)."
        )
    return next(iter(shared), None)


def _forms(value: str) -> set[Form]:
    if ISO.fullmatch(value):
        return {"iso"} if instant(value, "iso", ZoneInfo("UTC")) else set()
    if PARTS.fullmatch(value):
        both: tuple[Form, ...] = ("dmy", "mdy")
        return {form for form in both if instant(value, form, ZoneInfo("UTC"))}
    if WHOLE.fullmatch(value):
        number = float(value) * 1_000_000
        return {form for form, unit in EPOCHS.items() if EARLIEST <= number / 1e12 * unit <= LATEST}
    return set()


def instant(text: str, form: Form, zone: ZoneInfo) -> datetime.datetime | None:
    """The moment that a text says, in universal time; None if it says none in this form."""
    try:
        if form in EPOCHS:
            if not WHOLE.fullmatch(text):
                return None
            return EPOCH + datetime.timedelta(microseconds=round(float(text) * EPOCHS[form]))
        time = _iso(text) if form == "iso" else _parts(text, form)
        if time is None:
            return None
        return (time if time.tzinfo else time.replace(tzinfo=zone)).astimezone(datetime.UTC)
    except (ValueError, OverflowError):  # 31 February; the year 0
        return None


def _iso(text: str) -> datetime.datetime | None:
    if not ISO.fullmatch(text):
        return None
    text = re.sub(r"(?<=\d) UTC$", "", text) if re.search(r"[+-]\d\d:?\d\d UTC$", text) else text
    text = text.replace(",", ".").replace("UTC", "Z").replace(" Z", "Z")
    return datetime.datetime.fromisoformat(re.sub(r" (?=[+-])", "", text))


def _parts(text: str, form: Form) -> datetime.datetime | None:
    found = PARTS.fullmatch(text)
    if found is None:
        return None
    first, _, second, year_text, hours, minutes, seconds, half = found.groups()
    day, month = (first, second) if form == "dmy" else (second, first)
    year = int(year_text)
    if len(year_text) == 2:
        year += 2000 if year < CENTURY else 1900
    hour = int(hours or 0)
    if half:
        if not 1 <= hour <= 12:
            return None
        hour = hour % 12 + (12 if half in "Pp" else 0)
    return datetime.datetime(year, int(month), int(day), hour, int(minutes or 0), int(seconds or 0))


def instants(column: pa.Array, form: Form, zone: ZoneInfo) -> pa.Array:
    """The moments of a column of texts (timestamp[us, UTC]); null where a text says none."""
    import pyarrow as pa
    import pyarrow.compute as pc

    try:
        if form in EPOCHS:
            return _since_1970(pc.cast(column, pa.int64()), EPOCHS[form])
        naive = pc.cast(column, pa.timestamp("us")) if form == "iso" else _dated(column, form)
        return _in_zone(_in_the_calendar(naive), zone)
    except pa.ArrowInvalid:
        pass
    try:
        if form == "iso":
            return _in_the_calendar(pc.cast(column, pa.timestamp("us", "UTC")))
    except pa.ArrowInvalid:
        pass
    # Some differ, or are damaged: one by one.
    times = [None if text is None else instant(text, form, zone) for text in column.to_pylist()]
    return pa.array(times, pa.timestamp("us", "UTC"))


def _since_1970(whole: pa.Array, unit: int) -> pa.Array:
    """ArrowInvalid for numbers that have not a time's digits, or lie beyond the calendar."""
    import pyarrow as pa
    import pyarrow.compute as pc

    least, most = (pc.min_max(whole)[end].as_py() for end in ("min", "max"))
    if least is not None and (least < 10**7 or most >= 10**16 or most * unit > YEAR_9999):
        raise pa.ArrowInvalid("not times")
    return pc.cast(pc.multiply_checked(whole, unit), pa.timestamp("us", "UTC"))


def _in_the_calendar(times: pa.Array) -> pa.Array:
    import pyarrow as pa
    import pyarrow.compute as pc

    least = pc.min(pc.cast(times, pa.int64())).as_py()
    if least is not None and least < YEAR_1 + DAY:
        raise pa.ArrowInvalid("before the first year")
    return times


def _in_zone(naive: pa.Array, zone: ZoneInfo) -> pa.Array:
    import pyarrow as pa
    import pyarrow.compute as pc

    if zone.key == "UTC":
        return pc.cast(naive, pa.timestamp("us", "UTC"))
    local = pc.assume_timezone(naive, zone.key, ambiguous="earliest", nonexistent="earliest")
    return pc.cast(local, pa.timestamp("us", "UTC"))


def _dated(column: pa.Array, form: Form) -> pa.Array:
    """Turned round into ISO 8601, which Arrow reads strictly; ArrowInvalid if that is not enough.

    (Arrow's strptime is no help: it takes 31 February for 2 March.)
    """
    import pyarrow as pa
    import pyarrow.compute as pc

    if pc.all(pc.match_substring_regex(column, SIMPLE)).as_py() is False:
        raise pa.ArrowInvalid("not of one simple form")
    padded = pc.replace_substring_regex(column, r"^(\d)([./-])", r"0\1\2")
    padded = pc.replace_substring_regex(padded, r"([./-])(\d[./-])", r"\1" "0" r"\2")
    first, second, year, rest = (
        pc.utf8_slice_codeunits(padded, start, stop)
        for start, stop in ((0, 2), (3, 5), (6, 10), (10, None))
    )
    day, month = (first, second) if form == "dmy" else (second, first)
    date = pc.binary_join_element_wise(year, month, day, "-")
    return pc.cast(pc.binary_join_element_wise(date, rest, ""), pa.timestamp("us"))


def zone_option(name: str | None, default: ZoneInfo) -> ZoneInfo:
    """The option `zone`, or the person's own."""
    if name is None:
        return default
    try:
        return ZoneInfo(name)
    except (ZoneInfoNotFoundError, ValueError, OSError):
        raise UsageError(f"zone: there is no time zone {name[:60]!r}: say Europe/Paris.") from None


def order_option(order: str | None) -> Form | None:
    """The option `order`: which of 03/04/2024 is the day."""
    if order in (None, "dmy", "mdy"):
        return order  # type: ignore[return-value]
    raise UsageError(f"order: is dmy (3 April is 03/04) or mdy (04/03), not {order[:20]!r}.")
