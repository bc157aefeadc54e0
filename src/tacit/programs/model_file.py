"""A model file says by itself what it is: the model, its program with settings, and the schema.

With the schema and the program's encoder, new records become vectors exactly as in training. The
bytes follow from the model, the program and the schema alone, so that a certificate can name them.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tacit.data.encode import Encoder
from tacit.data.schema import Schema
from tacit.errors import CheckFailed, InputError, Refused, UsageError
from tacit.programs.files import about_of, from_bytes, read, to_bytes
from tacit.programs.prediction import Prediction
from tacit.programs.program import Learner
from tacit.programs.registry import learner_named
from tacit.programs.settings import plain_settings

__all__ = [
    "SavedModel",
    "check_canonical",
    "load_model",
    "model_bytes",
    "model_from_bytes",
    "save_model",
    "schema_of",
]

WITHOUT = (
    "holds a model alone, without its program and schema: read it with tacit.programs.files, or "
    "save it again with tacit.programs.model_file.save_model."
)


@dataclass(frozen=True, slots=True)
class SavedModel:
    """A model with what is needed to use it."""

    model: Any
    program: Learner
    schema: Schema

    @property
    def encoder(self) -> Encoder:
        """What makes vectors of records, as in training."""
        return self.program.encoder(self.schema)

    def predict(self, X: NDArray[np.float64]) -> Prediction | None:
        """What the model says of encoded records; None if it speaks of all records together.

        `encoder` makes them of a table, as in training: values beyond their public bounds count as
        the bounds, missing ones as the schema says.
        """
        return self.program.predict(self.model, X)


def model_bytes(model: Any, program: Learner, schema: Schema) -> bytes:
    """The bytes of a model file: equal models give equal bytes."""
    if type(model) not in program.models:
        raise UsageError(
            f"{type(model).__name__} is not a model of program {program.name!r}: give the program "
            "that made it; a program of your own lists its dataclasses in `models`."
        )
    about = {
        "program": program.written_name,
        "version": program.version,
        "settings": plain_settings(program),
        # Read back once: a bound that was given as 0 is 0.0 then, as it is in a schema from a file.
        "schema": Schema.from_dict(schema.to_dict()).to_dict(),
    }
    return to_bytes(model, about)


def save_model(path: str | Path, model: Any, program: Learner, schema: Schema) -> None:
    Path(path).write_bytes(model_bytes(model, program, schema))


def load_model(path: str | Path) -> SavedModel:
    """The model in a file; an InputError if it is damaged, Refused if its program is not here."""
    return model_from_bytes(read(path), str(path))


def model_from_bytes(data: bytes, where: str = "the model file") -> SavedModel:
    """The model in the bytes that `model_bytes` made; `where` they are from, for messages."""
    try:
        about = about_of(data)
        if about is None:
            raise InputError(WITHOUT)
        program, schema = _program(about), _schema(about)
        return SavedModel(from_bytes(program.models, data), program, schema)
    except Refused as error:
        raise Refused(f"{where}: {error}") from None
    except (InputError, UsageError) as error:
        raise InputError(f"{where}: {error}") from None


def schema_of(data: bytes) -> Schema:
    """The schema in the bytes of a model file."""
    return _schema(about_of(data))


def check_canonical(data: bytes, program: Learner, schema: Schema) -> Schema:
    """CheckFailed unless the bytes are the one spelling of a model of this program and schema.

    For whoever is sent a model: another spelling, an entry that nobody reads, another program's
    settings or a number that is not finite is not what the program makes. Where the schema leaves
    bounds to be found, the model's own has them, and agrees in all else; it is returned.
    """
    try:
        model = from_bytes(program.models, data)
        if schema.private:
            schema = _filled(schema, schema_of(data), program)
        whole = model_bytes(model, program, schema) == data
    except (InputError, UsageError) as error:
        raise CheckFailed(f"the model is not one of program {program.name!r}: {error}") from None
    if not whole:
        raise CheckFailed(
            f"the model file is not what program {program.name!r} writes for this schema: its "
            "settings, its schema or some bytes beside the model are others."
        )
    if not all(_is_finite(getattr(model, field.name)) for field in fields(model)):
        raise CheckFailed("the model holds a number that is infinite or none at all.")
    return schema


def _filled(agreed: Schema, learned: Schema, program: Learner) -> Schema:
    """The agreed schema, with the learned one's bounds where the program finds them; what was
    stated is never narrower for it."""
    found: dict[str, tuple[float, float, bool]] = {}
    for column in program.finds_bounds(agreed):
        own = learned.column(column.name)
        if not isinstance(own.bounds, tuple) or own.range_found is None:
            raise InputError(f"it does not say the range of {column.name!r}.")
        low, high = own.bounds
        if isinstance(column.bounds, tuple) and not (
            low <= column.bounds[0] and column.bounds[1] <= high and own.range_found
        ):
            raise InputError(f"its range of {column.name!r} is narrower than agreed.")
        found[column.name] = (low, high, own.range_found)
    return agreed.with_ranges(found)


def _is_finite(value: Any) -> bool:
    if isinstance(value, np.ndarray):
        return value.dtype.kind not in "fc" or bool(np.isfinite(value).all())
    if isinstance(value, tuple):
        return all(map(_is_finite, value))
    return not isinstance(value, float) or math.isfinite(value)


def _program(about: Any) -> Learner:
    name, version, settings = (_entry(about, key) for key in ("program", "version", "settings"))
    if not isinstance(name, str) or type(version) is not int or not isinstance(settings, dict):
        raise InputError("its program, version or settings are damaged.")
    return learner_named(name, version, settings, to_read=True)


def _schema(about: Any) -> Schema:
    document = _entry(about, "schema")
    if not isinstance(document, dict):
        raise InputError("its schema is damaged.")
    return Schema.from_dict(document)


def _entry(about: Any, key: str) -> Any:
    if not isinstance(about, dict) or key not in about:
        raise InputError(f"it does not say its {key}: it is damaged.")
    return about[key]
