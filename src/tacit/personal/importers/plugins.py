"""The importers that are installed: tacit's own and those of other packages, found the same way.

A package names its importers in its metadata, in the group `tacit.importers`. One that does not
load is left out, and `broken` says why: a faulty plug-in must not keep people from the others.
"""

from __future__ import annotations

import difflib
from importlib.metadata import EntryPoint, entry_points

from tacit.errors import InputError, UsageError
from tacit.personal.importers.export import Export
from tacit.personal.importers.importer import Importer

__all__ = ["GENERIC", "broken", "importer_named", "importers", "recognised"]

GROUP = "tacit.importers"
GENERIC = frozenset({"csv", "jsonl", "sqlite"})  # any app's tables: only if nothing else fits
OURS = "tacit."


def importers() -> dict[str, Importer]:
    """Name → importer, in the order of the alphabet."""
    return _loaded()[0]


def broken() -> dict[str, str]:
    """Name → why that plug-in could not be loaded."""
    return _loaded()[1]


def importer_named(name: str) -> Importer:
    known = importers()
    if name in known:
        return known[name]
    near = difflib.get_close_matches(name, known, n=1)
    guess = f" Did you mean {near[0]}?" if near else ""
    fault = broken().get(name)
    why = f" It is installed, but does not load: {fault}" if fault else ""
    raise UsageError(
        f"there is no importer {name[:60]!r}.{guess}{why} There are: {', '.join(known) or 'none'}."
    )


def recognised(export: Export) -> list[Importer]:
    """Those that take it for theirs; the generic ones only if no other does."""
    fitting = [one for one in importers().values() if _takes(one, export)]
    return [one for one in fitting if one.name not in GENERIC] or fitting


def _takes(importer: Importer, export: Export) -> bool:
    try:
        return importer.recognises(export)
    except InputError:  # a member that is damaged: not for this importer to say
        return False


def _loaded() -> tuple[dict[str, Importer], dict[str, str]]:
    good: dict[str, Importer] = {}
    faults: dict[str, str] = {}
    # Ours come first: no other package may take the place of one of them.
    found = sorted(set(entry_points(group=GROUP)), key=lambda e: (not _ours(e), e.name, e.value))
    for entry in found:
        if entry.name in good or entry.name in faults:
            faults[f"{entry.name} ({entry.value})"] = (
                "another package has an importer of this name."
            )
            continue
        try:
            good[entry.name] = _importer(entry)
        except Exception as error:  # whatever a stranger's module does while it is imported
            faults[entry.name] = f"{type(error).__name__}: {error}"
    return dict(sorted(good.items())), dict(sorted(faults.items()))


def _ours(entry: EntryPoint) -> bool:
    return entry.value.startswith(OURS)


def _importer(entry: EntryPoint) -> Importer:
    importer = entry.load()()
    if not isinstance(importer, Importer):
        raise UsageError(f"{entry.value} lacks an attribute or method of Importer.")
    if importer.name != entry.name:
        raise UsageError(f"{entry.value} calls itself {importer.name[:60]!r}.")
    return importer
