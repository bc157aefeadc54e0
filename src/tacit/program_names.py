"""What programs were called before all names were in lower case with hyphens.

A former name is read wherever a name is read: in studies, models, certificates, policies, ledgers
and arguments of commands. What was agreed or signed under it stays as it is, byte for byte
(`Learner.written_name`); it is shown under the name of today.
"""

from __future__ import annotations

import re

__all__ = ["FORMERLY", "PATTERN", "current_name", "shown_program"]

PATTERN = re.compile(r"[a-z0-9]+(-[a-z0-9]+)*", re.ASCII)

FORMERLY = {
    "gaussian mixture": "gaussian-mixture",
    "gaussian mixture as published": "gaussian-mixture-as-published",
    "gaussian mixture in shared coordinates": "gaussian-mixture-in-shared-coordinates",  # of audits
    "itemsets": "frequent-itemsets",
}


def current_name(name: str) -> str:
    """The name of today of what is, or was, called so."""
    return FORMERLY.get(name, name)


def shown_program(text: str) -> str:
    """A certificate's "name version", with the name of today."""
    name, space, version = text.rpartition(" ")
    return f"{current_name(name)}{space}{version}"
