"""`tacit predict MODEL FILE`: what a model says of new records."""

from __future__ import annotations

import csv
import io
import math
import sys
from contextlib import contextmanager, nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from tacit.cli.output import json_option, people, print_document
from tacit.cli.verify import SUFFIX
from tacit.errors import TableError, UsageError

if TYPE_CHECKING:
    from collections.abc import Iterator

    import numpy as np
    from numpy.typing import NDArray

    from tacit.data.schema import Column, Schema
    from tacit.data.unlabelled import Unlabelled
    from tacit.privacy.certificate import Verdict
    from tacit.programs.model_file import SavedModel
    from tacit.programs.prediction import Prediction

__all__ = ["predict"]

Row = list[Any]
SHOWN = 12  # categories named in a message


@click.command()
@click.argument("model", type=click.Path(path_type=Path))
@click.argument("file", type=click.Path(path_type=Path))
@click.option("--out", type=click.Path(path_type=Path), help="Write a CSV file here instead.")
@click.option("--scores", is_flag=True, help="Also how sure: a column for each class or cluster.")
@json_option
def predict(model: Path, file: Path, out: Path | None, scores: bool, as_json: bool) -> None:
    """Use MODEL on the records of FILE: CSV, Parquet or Arrow, with the columns of its schema.

    Prints CSV, one line for each record: its row and a class, a value in the label's unit, a
    cluster's number or components. The label may be absent; if it is there, what the model gets
    right is said too. A record that lacks what training could not do without has an empty line.

    A certificate beside the model is verified first: exit code 6 if it does not hold.
    """
    from tacit.programs.files import read
    from tacit.programs.model_file import model_from_bytes

    words = people(as_json=True)
    data = read(model)
    verdict = _vouched(model, data)
    if verdict is None:
        words.print(f"warning: no certificate beside {model}: nobody vouches for how it was made.")
    saved = model_from_bytes(data, str(model))
    _check_out(out, model, file)
    found = _Found(saved, scores)
    kept: list[Row] = []
    with nullcontext(kept.append) if as_json and out is None else _csv(out) as write:
        write(found.header)
        for part in _parts(file, saved.schema):
            for row in found.rows(part):
                write(row)
    document = _document(found, verdict, model, file)
    if as_json:
        table = {"columns": kept[0], "rows": kept[1:]} if out is None else {"out": str(out)}
        print_document({**document, **table})
    else:
        words.print(_summary(document, out))


def _vouched(model: Path, data: bytes) -> Verdict | None:
    """What the certificate beside the model says, checked against these very bytes."""
    from tacit.crypto.signing import digest
    from tacit.privacy.certificate import Certificate
    from tacit.programs.files import read

    beside = model.with_name(model.name + SUFFIX)
    if not beside.exists():
        return None
    return Certificate.from_json(read(beside)).verify(subject=digest(data))


class _Found:
    """What is said of the records, row by row, and how it compares with their labels so far."""

    def __init__(self, saved: SavedModel, with_scores: bool) -> None:
        """One made-up vector shows what the model says at all, before a file is read."""
        import numpy as np

        from tacit.data.unlabelled import features_alone
        from tacit.programs.prediction import class_names

        self.saved, self.with_scores = saved, with_scores
        self.records = self.predicted = self.labelled = self.right = 0
        self.squares = 0.0
        self.encoder = saved.program.encoder(features_alone(saved.schema))
        sample = self._said(np.zeros((1, self.encoder.width)))
        label, self.kind = saved.schema.label, sample.kind
        self.names = class_names(label) if label is not None and self.kind == "class" else ()
        self.header: Row = ["row", *_titles(sample)]
        if with_scores:
            self.header += self._score_titles(sample)

    def _score_titles(self, sample: Prediction) -> list[str]:
        if sample.scores is None:
            raise UsageError(
                f"a model of {self.saved.program.name!r} has nothing to add to what it says of a "
                "record: leave --scores out."
            )
        places = range(sample.scores.shape[1])
        return [f"score {self.names[i] if self.names else i}" for i in places]

    def _said(self, X: NDArray[np.float64]) -> Prediction:
        found = self.saved.predict(X)
        if found is None:
            raise UsageError(
                f"a model of {self.saved.program.name!r} speaks of all records together, not of "
                "single ones. Read what it found in Python: "
                "tacit.programs.model_file.load_model(PATH).model"
            )
        return found

    def rows(self, part: Unlabelled) -> Iterator[Row]:
        self.records += len(part.kept)
        said: Iterator[Row] = iter(())
        if part.batch.rows:
            prediction = self._said(self.encoder.encode(part.batch).X)
            self._compare(prediction, part.label)
            said = iter(self._cells(prediction))
        nothing: Row = [None] * (len(self.header) - 1)
        for row, kept in enumerate(part.kept.tolist(), start=part.first_row):
            yield [row, *(next(said) if kept else nothing)]

    def _cells(self, prediction: Prediction) -> list[Row]:
        values = prediction.values.tolist()
        if self.names:
            values = [self.names[place] for place in values]
        rows = values if prediction.values.ndim == 2 else [[value] for value in values]
        if self.with_scores and prediction.scores is not None:
            return [[*a, *b] for a, b in zip(rows, prediction.scores.tolist(), strict=True)]
        return rows

    def _compare(self, prediction: Prediction, label: NDArray[np.float64] | None) -> None:
        import numpy as np

        self.predicted += len(prediction.values)
        if label is None or self.kind not in ("class", "value"):
            return
        known = ~np.isnan(label)
        self.labelled += int(known.sum())
        far = prediction.values[known] - label[known]
        self.right += int((far == 0).sum())
        self.squares += float(far @ far)


def _titles(sample: Prediction) -> list[str]:
    if sample.kind == "components":
        return [f"component {i + 1}" for i in range(sample.values.shape[1])]
    return ["cluster" if sample.kind == "cluster" else "prediction"]


def _parts(file: Path, schema: Schema) -> Iterator[Unlabelled]:
    """The file's records; a bad cell's remedy is to mend the file, as the schema is settled."""
    from tacit.data.unlabelled import read_unlabelled

    try:
        yield from read_unlabelled(str(file), schema)
    except TableError as error:
        if error.row is None or error.column is None:
            raise
        place = {"file": error.file, "row": error.row, "column": error.column}
        start = len(str(TableError("", **place)))  # type: ignore[arg-type]
        problem = str(error)[start:].removesuffix(f" {error.remedy}")
        remedy = f"{_wanted(schema.column(error.column))} Mend the file: the model knows no more."
        raise TableError(problem, remedy=remedy, **place) from None  # type: ignore[arg-type]


def _wanted(column: Column) -> str:
    """What a cell may hold, by the public schema."""
    if column.is_number:
        return "It was learned from numbers here."
    named = column.categories if isinstance(column.categories, tuple) else ("false", "true")
    more = " …" if len(named) > SHOWN else ""
    return f"It was learned from: {', '.join(named[:SHOWN])}{more}."


def _check_out(out: Path | None, *read: Path) -> None:
    if out is not None and out.resolve() in [path.resolve() for path in read]:
        raise UsageError(f"--out {out} would overwrite what is read: name another file.")


@contextmanager
def _csv(out: Path | None) -> Iterator[Any]:
    """Rows to standard output, or to a file that appears only when it is whole."""
    if out is None:
        yield csv.writer(sys.stdout, lineterminator="\n").writerow
        return
    from tacit.whole_file import whole_file

    try:
        with whole_file(out) as file:
            lines = io.TextIOWrapper(file, encoding="utf-8", newline="")
            try:
                yield csv.writer(lines, lineterminator="\n").writerow
            finally:
                lines.detach()  # flushed, and left open
    except OSError as error:
        raise UsageError(f"{out} cannot be written: {error.strerror}.") from None


def _document(found: _Found, verdict: Verdict | None, model: Path, file: Path) -> dict[str, Any]:
    document: dict[str, Any] = {
        "model": str(model),
        "program": found.saved.program.name,
        "certificate": None if verdict is None else _vouching(verdict),
        "file": str(file),
        "records": found.records,
        "predicted": found.predicted,
        "labelled": found.labelled,
    }
    if found.labelled and found.kind == "class":
        document["accuracy"] = found.right / found.labelled
    elif found.labelled:
        document["root_mean_squared_error"] = math.sqrt(found.squares / found.labelled)
    return document


def _vouching(verdict: Verdict) -> dict[str, Any]:
    epsilon = None if math.isinf(verdict.epsilon) else verdict.epsilon
    return {"epsilon": epsilon, "delta": verdict.delta, "signer": verdict.signer}


def _summary(document: dict[str, Any], out: Path | None) -> str:
    told = f"{document['predicted']:,} of {document['records']:,} records"
    text = f"{document['program']}: {told}" + (f", in {out}" if out else "")
    if "accuracy" in document:
        text += f". Right: {document['accuracy']:.2%} of {document['labelled']:,} with a label"
    if "root_mean_squared_error" in document:
        error = document["root_mean_squared_error"]
        text += f". Off by {error:.6g} (root mean square) for {document['labelled']:,} with a label"
    return text + "."
