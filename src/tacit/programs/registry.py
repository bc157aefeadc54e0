"""The programs installed on this machine, by name: tacit's own, and those of other packages.

A study names a program; it never brings one. Nothing that arrives over a network is imported or
executed: a name is looked up here, among what whoever runs this machine has installed, or has
allowed by its place, "module:Class" (`tacit program allow`). Another package offers programs by
entry points of the group "tacit.programs" in its pyproject.toml:

    [project.entry-points."tacit.programs"]
    score-histogram = "my_package.scores:ScoreHistogram"

It cannot take a name that tacit has or had: an agreed name means the same on every machine.
"""

from __future__ import annotations

import copy
import importlib
from collections.abc import Mapping
from importlib.metadata import EntryPoint, entry_points
from typing import Any

from tacit.errors import Refused
from tacit.program_names import FORMERLY, current_name
from tacit.programs.allowed import PLACE, allowed, check_declared, imported
from tacit.programs.program import Learner, Program
from tacit.programs.settings import built

__all__ = ["GROUP", "installed", "is_own", "learner_named", "program_named", "summing"]

GROUP = "tacit.programs"
# `Ranges` is not here: it reads numbers before there are bounds, and a study's schema has them.
OWN = {
    "averaged-logistic": "tacit.programs.averaging:AveragedLogistic",
    "gaussian-mixture": "tacit.programs.mixture:Mixture",
    "gaussian-mixture-as-published": "tacit.programs.mixture_published:PublishedMixture",
    "histogram": "tacit.programs.histogram:Histogram",
    "frequent-itemsets": "tacit.programs.itemsets:FrequentItemsets",
    "k-means": "tacit.programs.kmeans:KMeans",
    "linear-regression": "tacit.programs.linear:LinearRegression",
    "logistic": "tacit.programs.logistic:Logistic",
    "naive-bayes": "tacit.programs.naive_bayes:NaiveBayes",
    "partition-ensemble": "tacit.programs.partition_ensemble:PartitionEnsemble",
    "pca": "tacit.programs.pca:PCA",
    "quantiles": "tacit.programs.quantiles:Quantiles",
    "tabulated-bayes": "tacit.programs.tabulated_bayes:TabulatedBayes",
}


def installed() -> dict[str, type[Learner]]:
    """Every program that can be run here. What another package offers but cannot load is left out:
    one broken package must not stop the others."""
    found = {name: _own(name) for name in OWN}
    for name in _offered():
        try:
            found[name] = _foreign(name)
        except Refused:
            continue
    return found


def program_named(
    name: str, version: int | None = None, settings: Mapping[str, Any] | None = None
) -> Program[Any, Any]:
    """The installed program of this name, as `learner_named` finds it."""
    return summing(learner_named(name, version, settings))


def summing(found: Learner) -> Program[Any, Any]:
    """The same, if it sums over records; Refused if not."""
    if not isinstance(found, Program):
        raise Refused(
            f"{found.name!r} is not made of sums over records. What parties train alone and "
            "average is for a consortium, and what is learned from tables is for a crowd: give it "
            "to these, or name a program that sums, such as logistic."
        )
    return found


def learner_named(
    name: str,
    version: int | None = None,
    settings: Mapping[str, Any] | None = None,
    to_read: bool = False,
) -> Learner:
    """What is installed under this name, with settings as plain data (settings.py). `to_read`: a
    model that is there already, which may be of an earlier version that this one reads.

    Under a former name it is the program of today, and what it writes still has that name.

    Refused if it, or this version of it, is not installed; UsageError if it does not take these
    settings.
    """
    written, name = name, current_name(name)
    if PLACE.fullmatch(name):
        kind = _by_place(name)
    elif name in OWN:
        kind = _own(name)
    elif name in _offered():
        kind = _foreign(name)
    else:
        known = ", ".join(sorted([*OWN, *_offered()]))
        raise Refused(
            f"program {str(name)[:60]!r} is not installed here. Installed: {known}. Correct the "
            "name, or install the package that has the program, if you trust it."
        )
    accepted = (kind.version, *kind.reads) if to_read else (kind.version,)
    if version is not None and version not in accepted:
        raise Refused(
            f"version {str(version)[:20]} of program {name!r} was asked for, and version "
            f"{kind.version} is installed here. Install the release that has it, or agree on "
            f"version {kind.version}: models of different versions are not comparable."
        )
    found = built(kind, settings or {})
    return found if written == found.name else _called(found, written)


def _called(learner: Learner, written: str) -> Learner:
    found = copy.copy(learner)
    found._written_name = written
    return found


def is_own(kind: type[Learner]) -> bool:
    """Whether it is one of tacit's, and not one that says so of itself."""
    names = {place: name for name, place in OWN.items()}
    name = names.get(f"{kind.__module__}:{kind.__qualname__}")
    return name is not None and _own(name) is kind


def _by_place(place: str) -> type[Learner]:
    """What the owner of this machine has allowed; nothing is imported before that is known."""
    if place not in allowed():
        raise Refused(
            f"program {place} is not allowed on this machine: its code would be run here, on your "
            "records. Read it, and if you trust it: tacit program allow " + place
        )
    kind = imported(place)
    if current_name(str(getattr(kind, "name", ""))) in OWN:
        raise Refused(f"{place} calls itself {kind.name!r}, which is tacit's: rename it.")
    return kind


def _own(name: str) -> type[Learner]:
    module, attribute = OWN[name].split(":")
    found: type[Learner] = getattr(importlib.import_module(module), attribute)
    return found


def _offered() -> dict[str, list[EntryPoint]]:
    """What other packages offer, by name, without importing it."""
    found: dict[str, list[EntryPoint]] = {}
    for point in entry_points(group=GROUP):
        if point.name not in OWN and point.name not in FORMERLY:
            found.setdefault(point.name, []).append(point)
    return found


def _foreign(name: str) -> type[Learner]:
    points = _offered()[name]
    if len({point.value for point in points}) > 1:
        raise Refused(
            f"several packages offer a program {name!r}: {', '.join(p.value for p in points)}. "
            "Which one is meant cannot be known: uninstall all but one."
        )
    try:
        kind = points[0].load()
    except Exception as error:  # whatever a package does when it is imported
        raise Refused(
            f"program {name!r} cannot be loaded from {points[0].value} ({type(error).__name__}). "
            "Mend or uninstall the package that offers it."
        ) from None
    if not (isinstance(kind, type) and issubclass(kind, Learner)):
        raise Refused(
            f"{points[0].value}, offered as program {name!r}, is not a subclass of "
            "tacit.programs.Program. Mend or uninstall the package that offers it."
        )
    if getattr(kind, "name", None) != name:
        raise Refused(
            f"{points[0].value} is offered as program {name!r} but calls itself otherwise: its "
            "entry point must have its name."
        )
    check_declared(kind, f"{points[0].value}, offered as program {name!r},")
    return kind
