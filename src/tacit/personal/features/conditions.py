"""Conditions on events by themselves, as they stand in a problem's `where`."""

from __future__ import annotations

from zoneinfo import ZoneInfo

import numpy as np
from numpy.typing import NDArray

from tacit.personal.dataset import UTC, Dataset, EventTable
from tacit.personal.features.language import parse_condition
from tacit.personal.features.rows import row_truths
from tacit.personal.features.signature import check_condition

__all__ = ["fulfils"]


def fulfils(condition: str, table: EventTable, zone: ZoneInfo = UTC) -> NDArray[np.bool_]:
    """Which events of the table fulfil it: `status = "completed" and hour(time) < 9`."""
    type_ = table.kind.name
    parsed = parse_condition(condition, type_)
    check_condition(parsed, {type_: table.kind})
    return row_truths(parsed, type_, Dataset({type_: table}, zone))
