"""A bundle: a problem that is passed on, with the signature of whoever wrote it.

It is the problem's own file with one more table, so a bundle is inspected by reading it, and used
without running anything of its author's. A signature says who wrote it and that nothing has been
changed since; whether to trust the author is up to the reader.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import msgspec

from tacit.crypto.signing import SigningKey, canonical, signed_by
from tacit.data.toml import table_lines, table_of
from tacit.errors import CheckFailed, InputError
from tacit.personal.problems.explained import Section, explained
from tacit.personal.problems.file import canonical_form, check_texts, read_document
from tacit.personal.problems.problem import Problem

__all__ = ["Bundle"]

KEY, SIGNATURE = re.compile(r"[0-9a-f]{64}"), re.compile(r"[0-9a-f]{128}")
COMMENT = "# Over everything above, comments and layout excepted."


class _Signature(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    author: str
    signature: str


@dataclass(frozen=True)
class Bundle:
    """A problem, the public key of its author, and the author's signature; empty if unsigned."""

    problem: Problem
    author: str = ""
    signature: str = ""

    @classmethod
    def load(cls, path: str | Path) -> Bundle:
        """Read a bundle, or a problem's file without a signature. Whether the signature holds:
        `check_signature`."""
        return cls.from_dict(read_document(Path(path)), str(path))

    @classmethod
    def from_dict(cls, document: Mapping[str, Any], where: str = "bundle") -> Bundle:
        plain = dict(document)
        part = plain.pop("signature", None)
        check_texts({"signature": part})
        problem = Problem.from_dict(plain, where)
        if part is None:
            return cls(problem)
        signed: _Signature = table_of(part, _Signature, f"{where}, [signature]")
        if not KEY.fullmatch(signed.author) or not SIGNATURE.fullmatch(signed.signature):
            raise InputError(
                f"{where}, [signature]: author has 64 and signature 128 hexadecimal digits in "
                "small letters. Ask the author for the file as it was."
            )
        return cls(problem, signed.author, signed.signature)

    def to_toml(self) -> str:
        """The file: the same bytes for the same bundle."""
        text = self.problem.to_toml()
        if not self.signature:
            return text
        table = table_lines({"author": self.author, "signature": self.signature})
        return "\n".join([text, COMMENT, "[signature]", *table]) + "\n"

    @property
    def digest(self) -> str:
        """Of the problem, whoever signed it: what people compare."""
        return self.problem.digest

    def signed(self, key: SigningKey) -> Bundle:
        """The same problem, signed by this key."""
        author = key.public_key
        return Bundle(self.problem, author, key.sign(_message(self.problem, author)))

    def check_signature(self) -> None:
        """Raise unless the author's signature covers everything that stands in the bundle."""
        name = self.problem.name
        if not self.signature:
            raise CheckFailed(f"bundle {name}: is not signed. Ask for one that is, or read it all.")
        if not signed_by(self.author, self.signature, _message(self.problem, self.author)):
            raise CheckFailed(
                f"bundle {name}: the signature does not fit: something was changed after signing. "
                "Ask the author for the file as it was."
            )

    def explained(self) -> list[Section]:
        """What it would do, in plain words, before it is used."""
        return explained(self.problem)


def _message(problem: Problem, author: str) -> bytes:
    """The author's key is signed too: nobody can put another name to the same signature."""
    return canonical({"bundle": canonical_form(problem), "author": author})
