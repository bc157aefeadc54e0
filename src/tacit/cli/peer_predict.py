"""`tacit peer predict`: what a peer's models say of records, and how often they are right."""

from __future__ import annotations

import csv
import io
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from tacit.channels.peers.ensemble import Classifier, Ensemble
from tacit.channels.peers.library import Library
from tacit.channels.peers.pact import Pact
from tacit.channels.peers.status import ensemble_of
from tacit.channels.peers.vetting import voting_models
from tacit.channels.peers.worth import Worth, read_worth
from tacit.cli.peer_words import pact_of, peer_folder
from tacit.data.encode import Encoded
from tacit.data.records import TableRecords, whole
from tacit.data.unlabelled import features_alone, read_unlabelled
from tacit.errors import InputError
from tacit.programs.model_file import model_from_bytes

__all__ = ["OWN", "Predicted", "predicted"]

OWN = "own.model"  # in a peer's folder: its own model, without noise: it never leaves
NAMED = 12  # letters of a model's name that are shown


@dataclass(frozen=True, slots=True)
class Predicted:
    """Each record's row and class, None for one that lacks what training could not do without;
    with votes, what each model says follows."""

    titles: tuple[str, ...]
    rows: list[tuple[int | str | None, ...]]
    document: dict[str, Any]
    worth: Worth | None

    @property
    def csv(self) -> str:
        """Classes are what the network's schema calls them: also with commas in their names."""
        text = io.StringIO()
        csv.writer(text, lineterminator="\n").writerows([self.titles, *self.rows])
        return text.getvalue()

    @property
    def summary(self) -> str:
        told = self.document
        text = f"{told['predicted']:,} of {told['records']:,} records, by {told['models']} models"
        if "accuracy" in told:
            text += f". Right: {told['accuracy']:.2%} of {told['labelled']:,} with a label"
        measured = [] if self.worth is None else self.worth.words
        return "\n".join([f"{text}.", *measured])


@dataclass(frozen=True, slots=True)
class _Voters:
    """An ensemble, and what its voters are called, one's own last."""

    ensemble: Ensemble
    names: tuple[str, ...]
    worth: Worth | None

    @property
    def weights(self) -> dict[str, float]:
        """Of all votes, 1 in all."""
        given = self.ensemble.weights or ()
        known = given if any(given) else (1.0,) * len(self.names)
        return {name: one / sum(known) for name, one in zip(self.names, known, strict=True)}


def predicted(
    network: str, file: Path, folder: Path | None, weigh: Path | None, votes: bool = False
) -> Predicted:
    """By vote of all models here, one's own included: as they were measured, or by `weigh`, records
    with labels; else all alike. With `votes`, also what each of them says."""
    pact = pact_of(network, folder)
    return _said(pact, _voters(pact, peer_folder(network, folder), weigh), file, votes)


def _voters(pact: Pact, where: Path, weigh: Path | None) -> _Voters:
    own = model_from_bytes((where / OWN).read_bytes()).model if (where / OWN).exists() else None
    worth = read_worth(where, pact.digest) if weigh is None else None
    library = Library(where / "library.db", pact.digest)
    try:
        judged = None if weigh is None else _encoded(pact, weigh)
        found = ensemble_of(pact, library, own, judged, worth)
        names = [name[:NAMED] for name in voting_models(pact, library)]
    finally:
        library.close()
    if found is None:
        raise InputError("no model has arrived yet: wait for the first.")
    return _Voters(found, (*names, *(["own"] if own is not None else [])), worth)


def _encoded(pact: Pact, file: Path) -> Encoded:
    records = TableRecords(file, pact.averaged.encoder(pact.schema))
    return whole(records)


def _said(pact: Pact, voters: _Voters, file: Path, votes: bool) -> Predicted:
    ensemble, encoder = voters.ensemble, pact.averaged.encoder(features_alone(pact.schema))
    asked: list[Ensemble | Classifier] = [ensemble, *(ensemble.voters if votes else ())]
    rows: list[tuple[int | str | None, ...]] = []
    known = labelled = right = 0
    for part in read_unlabelled(str(file), pact.schema):
        X = encoder.encode(part.batch).X if part.batch.rows else None
        said = [np.empty(0) if X is None else one.predict(X) for one in asked]
        names = iter(
            [[ensemble.classes[int(place)] for place in row] for row in zip(*said, strict=True)]
        )
        places = enumerate(part.kept.tolist(), start=part.first_row)
        rows += [(row, *(next(names) if kept else [None] * len(asked))) for row, kept in places]
        known += len(said[0])
        if part.label is not None:
            labelled += int((~np.isnan(part.label)).sum())
            right += int((said[0] == part.label).sum())
    document = {
        "file": str(file),
        "models": len(ensemble.voters),
        "records": len(rows),
        "predicted": known,
        "labelled": labelled,
        **({"weights": voters.weights} if votes else {}),
        **({} if voters.worth is None else {"measured": voters.worth.document()}),
        **({"accuracy": right / labelled} if labelled else {}),
    }
    titles = ("row", "prediction", *(voters.names if votes else ()))
    return Predicted(titles, rows, document, voters.worth)
