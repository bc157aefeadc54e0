"""Headers of tables as names of fields: small letters, digits and _, each once."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable

__all__ = ["field_names", "plain_name"]

LONGEST = 56  # of 64, so that a number may follow
TAKEN = {"time", "source"}


def plain_name(text: str) -> str:
    """`Fare (€)` → `fare`, `Größe in cm` → `grosse_in_cm`, `2nd try` → `n_2nd_try`; "" → ""."""
    bare = unicodedata.normalize("NFKD", text.replace("ß", "ss"))
    # HeartRate → Heart_Rate, but not URL → U_R_L
    spaced = re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", bare)
    ascii_only = spaced.encode("ascii", "ignore").decode().lower()
    name = re.sub(r"[^a-z0-9]+", "_", ascii_only).strip("_")
    if name[:1].isdigit():
        name = f"n_{name}"
    return name[:LONGEST].rstrip("_")


def field_names(headers: Iterable[str]) -> list[str]:
    """A name for each header, in order; none twice, none that events have taken."""
    names: list[str] = []
    used = set(TAKEN)
    for number, header in enumerate(headers, 1):
        base = plain_name(header) or f"column_{number}"
        name = f"{base}_value" if base in TAKEN else base
        count = 1
        while name in used:
            count += 1
            name = f"{base}_{count}"
        used.add(name)
        names.append(name)
    return names
