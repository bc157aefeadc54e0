"""`tacit peer predict`: what a peer's models say of records, and how often they are right."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from tacit.channels.peers.ensemble import Ensemble
from tacit.channels.peers.library import Library
from tacit.channels.peers.pact import Pact
from tacit.channels.peers.status import ensemble_of
from tacit.cli.peer_words import pact_of
from tacit.data.encode import Encoded
from tacit.data.records import TableRecords, whole
from tacit.data.unlabelled import features_alone, read_unlabelled
from tacit.errors import InputError
from tacit.home import tacit_home
from tacit.programs.model_file import model_from_bytes

__all__ = ["OWN", "Predicted", "predicted"]

OWN = "own.model"  # in a peer's folder: its own model, without noise: it never leaves


@dataclass(frozen=True, slots=True)
class Predicted:
    """Each record's row and class, None for one that lacks what training could not do without."""

    rows: list[tuple[int, str | None]]
    document: dict[str, Any]

    @property
    def summary(self) -> str:
        told = self.document
        text = f"{told['predicted']:,} of {told['records']:,} records, by {told['models']} models"
        if "accuracy" in told:
            text += f". Right: {told['accuracy']:.2%} of {told['labelled']:,} with a label"
        return text + "."


def predicted(network: str, file: Path, folder: Path | None, weigh: Path | None) -> Predicted:
    """By majority vote of all models here, one's own included; by `weigh`, records with labels,
    votes count more or less."""
    where, pact = folder or tacit_home() / "peers" / network, pact_of(network, folder)
    return _said(pact, _ensemble(pact, where, weigh), file)


def _ensemble(pact: Pact, where: Path, weigh: Path | None) -> Ensemble:
    own = model_from_bytes((where / OWN).read_bytes()).model if (where / OWN).exists() else None
    library = Library(where / "library.db", pact.digest)
    try:
        judged = None if weigh is None else _encoded(pact, weigh)
        found = ensemble_of(pact, library, own, judged)
    finally:
        library.close()
    if found is None:
        raise InputError("no model has arrived yet: wait for the first.")
    return found


def _encoded(pact: Pact, file: Path) -> Encoded:
    records = TableRecords(file, pact.averaged.encoder(pact.schema))
    return whole(records)


def _said(pact: Pact, ensemble: Ensemble, file: Path) -> Predicted:
    encoder = pact.averaged.encoder(features_alone(pact.schema))
    rows: list[tuple[int, str | None]] = []
    known = labelled = right = 0
    for part in read_unlabelled(str(file), pact.schema):
        said = ensemble.predict(encoder.encode(part.batch).X) if part.batch.rows else np.empty(0)
        names = iter([ensemble.classes[int(place)] for place in said])
        places = enumerate(part.kept.tolist(), start=part.first_row)
        rows += [(row, next(names) if kept else None) for row, kept in places]
        known += len(said)
        if part.label is not None:
            labelled += int((~np.isnan(part.label)).sum())
            right += int((said == part.label).sum())
    document = {
        "file": str(file),
        "models": len(ensemble.voters),
        "records": len(rows),
        "predicted": known,
        "labelled": labelled,
    }
    return Predicted(rows, {**document, "accuracy": right / labelled} if labelled else document)
