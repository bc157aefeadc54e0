"""What exports from Google's Takeout have in common: JSON, if one has asked for it."""

from __future__ import annotations

from collections.abc import Sequence

from tacit.errors import InputError
from tacit.personal.importers.export import Export, Member

__all__ = ["in_json"]


def in_json(export: Export, members: Sequence[Member], pages: Sequence[str]) -> Sequence[Member]:
    """The members; an error with the remedy if there are only web pages of these names."""
    if not members and export.find(*pages):
        raise InputError(
            f"{export.name}: holds web pages, which are for people. Request it anew at "
            "takeout.google.com and, under «Multiple formats», choose JSON."
        )
    return members
