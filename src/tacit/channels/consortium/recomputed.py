"""A certificate is believed if it is the one that was recomputed, field by field.

The comparison comes before the certificate is verified: what somebody else has written into it,
however long it takes to account for, is never worked out.
"""

from __future__ import annotations

import re
from dataclasses import fields, replace
from datetime import UTC, datetime

from tacit.errors import CheckFailed
from tacit.privacy.certificate import Certificate

__all__ = ["check_recomputed"]

LIBRARY = re.compile(r"tacit [0-9][0-9a-z.+]{0,30}", re.ASCII)


def check_recomputed(found: Certificate, wanted: Certificate) -> None:
    """CheckFailed if they differ in more than who signed when, with which tacit."""
    expected = replace(
        wanted,
        issued=found.issued,
        library=found.library,
        public_key=found.public_key,
        signature=found.signature,
    )
    wrong = [
        field.name
        for field in fields(found)
        if getattr(found, field.name) != getattr(expected, field.name)
    ]
    wrong += [] if _is_date(found.issued) else ["issued"]
    wrong += [] if LIBRARY.fullmatch(found.library) else ["library"]
    if wrong:
        raise CheckFailed(
            f"the certificate says something else than this study does in: {', '.join(wrong)}. Do "
            "not use the model; ask for the one that was made."
        )


def _is_date(text: str) -> bool:
    """As a certificate writes it."""
    try:
        date = datetime.fromisoformat(text)
    except ValueError:
        return False
    return date.tzinfo == UTC and date.isoformat(timespec="seconds") == text
