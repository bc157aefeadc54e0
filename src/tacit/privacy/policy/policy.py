"""A holder's policy: rules for each data set, signed by those who may decide.

The text of the one in force stands in the ledger's chain. So it cannot be missing or altered
without the ledger saying so, and nothing is reserved for a data set that it does not allow.
"""

from __future__ import annotations

import json
import re
import unicodedata
from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields, replace
from functools import cached_property
from pathlib import Path
from typing import Any

from tacit.crypto.signing import SigningKey, canonical, digest, signed_by
from tacit.errors import CheckFailed, InputError, Refused
from tacit.privacy.policy import reading
from tacit.privacy.policy.rules import Asked, Broken, Rules, Totals
from tacit.privacy.policy.trust import Trust
from tacit.privacy.promise import Promise, Unit

__all__ = [
    "APPROVAL",
    "FORMAT",
    "Approval",
    "Policy",
    "distinct_digest",
    "folded",
    "lines_of",
    "read_trust",
]

FORMAT = "tacit policy 1"
OTHERS = "*"
MAX_APPROVERS = 100
MAX_DATASETS = 1000
SIGNATURE = re.compile(r"[0-9a-f]{128}")
HEAD = ("format", "name", "number", "approvers", "needed", "datasets", "signatures")

TOP = """\
# What may be done with the data of one holder. `tacit policy show FILE` says it in words.
# Whoever changes anything signs it anew: tacit policy sign FILE; then: tacit policy use FILE
"""


@dataclass(frozen=True)
class Policy:
    """`number` grows with every policy that replaces another, so that an old one cannot come back.

    approvers   public keys of those who may sign policies and approve studies
    needed      how many of them must
    datasets    by the ledger's name; "*" stands for those that are not named
    signatures  by public key
    """

    name: str
    number: int
    approvers: tuple[str, ...]
    needed: int
    datasets: Mapping[str, Rules]
    signatures: Mapping[str, str]

    # ── the file ──

    @classmethod
    def load(cls, path: str | Path) -> Policy:
        """Read a TOML file. Whether its signatures hold: `check_signatures`."""
        remedy = f"Write one with: tacit policy new {path}"
        return cls.from_toml(reading.read_text(Path(path), remedy), str(path))

    @classmethod
    def from_toml(cls, text: str, where: str = "policy") -> Policy:
        return cls.from_dict(reading.toml_of(text, where), where)

    @classmethod
    def from_dict(cls, document: Mapping[str, Any], where: str = "policy") -> Policy:
        """From plain data, as `tomllib` reads it; InputError for anything that is not a policy."""
        table = reading.only_known(document, HEAD, where)
        if table.get("format") != FORMAT:
            raise InputError(f"{where}: format must be {FORMAT!r} for this version of tacit.")
        for key in ("name", "approvers", "datasets"):
            if key not in table:
                raise InputError(f"{where}: {key!r} is missing. See: tacit policy new --help")
        approvers = reading.keys(table["approvers"], f"{where}, approvers")
        if not 1 <= len(approvers) <= MAX_APPROVERS:
            raise InputError(f"{where}, approvers: name 1 to {MAX_APPROVERS} of them.")
        return cls(
            name=reading.line(table["name"], f"{where}, name"),
            number=reading.whole_number(table.get("number", 1), f"{where}, number", 10**9),
            approvers=approvers,
            needed=reading.whole_number(table.get("needed", 1), f"{where}, needed", len(approvers)),
            datasets=_datasets(table["datasets"], where),
            signatures=_signatures(table.get("signatures", {}), where),
        )

    def to_toml(self) -> str:
        """The same text for the same policy."""
        head = {"format": FORMAT, "name": self.name, "number": self.number}
        who = {"approvers": list(self.approvers), "needed": self.needed}
        lines = [TOP, *lines_of({**head, **who})]
        for name, rules in self.datasets.items():
            lines += ["", f"[datasets.{_quoted(name)}]", *lines_of(_plain(rules))]
        if self.signatures:
            lines += ["", "[signatures]", *lines_of(dict(sorted(self.signatures.items())))]
        return "\n".join(lines) + "\n"

    # ── signatures ──

    @cached_property
    def digest(self) -> str:
        """SHA-256 of everything but the signatures."""
        return digest(self._form())

    def signed(self, key: SigningKey) -> Policy:
        signature = key.sign(canonical(self._form()))
        return replace(self, signatures={**self.signatures, key.public_key: signature})

    def signers(self) -> frozenset[str]:
        """Whose signatures hold."""
        message = canonical(self._form())
        return frozenset(k for k, s in self.signatures.items() if signed_by(k, s, message))

    def check_signatures(self, before: Policy | None = None) -> None:
        """Raise unless enough of its approvers have signed it, and enough of the earlier one's.

        Its own must sign too: a slip in a key would leave nobody who can change it.
        """
        signers, wrong = self.signers(), set(self.signatures) - self.signers()
        if wrong:
            raise CheckFailed(
                f"policy {self.name}: the signature of {min(wrong)} does not fit: something was "
                "changed after signing. Sign it anew: tacit policy sign FILE"
            )
        if before is not None and self.number <= before.number:
            raise Refused(
                f"policy {self.name} has number {self.number}, and the one in force has "
                f"{before.number}: an older policy does not come back. Write number = "
                f"{before.number + 1}, and have it signed."
            )
        for whose, policy in (("its own", self), ("the earlier policy's", before)):
            if policy is None:
                continue
            count = len(signers & set(policy.approvers))
            if count < policy.needed:
                raise Refused(
                    f"policy {self.name} is signed by {count} of {whose} approvers, and "
                    f"{policy.needed} must. An approver signs it: tacit policy sign FILE"
                )

    def _form(self) -> dict[str, Any]:
        form = {
            "format": FORMAT,
            "name": self.name,
            "number": self.number,
            "approvers": list(self.approvers),
            "needed": self.needed,
            "datasets": {name: _plain(rules) for name, rules in self.datasets.items()},
        }
        exact: dict[str, Any] = _exact(form)
        return exact

    # ── deciding ──

    def table(self, dataset: str) -> str | None:
        """The name of the table that holds for a data set."""
        if dataset in self.datasets:
            return dataset
        alike = (name for name in self.datasets if folded(name) == folded(dataset))
        return next(alike, OTHERS if OTHERS in self.datasets else None)

    def rules(self, dataset: str) -> Rules | None:
        name = self.table(dataset)
        return None if name is None else self.datasets[name]

    def broken(
        self,
        dataset: str,
        promise: Promise,
        asked: Asked,
        totals: Totals | None = None,
        approvers: frozenset[str] = frozenset(),
    ) -> list[Broken]:
        """All rules that a spend would break; `approvers` have signed its study."""
        name = self.table(dataset)
        if name is None:
            known = ", ".join(list(self.datasets)[:5]) or "none"
            remedy = "Ask the approvers for a policy that names it."
            return [Broken("datasets", f"data set {dataset}", known, remedy)]
        approved = len(approvers & set(self.approvers))
        found = self.datasets[name].broken(
            asked, promise, totals or Totals.first(promise), approved, self.needed
        )
        place = name if _BARE.fullmatch(name) else _quoted(name)
        return [replace(one, rule=f"datasets.{place}.{one.rule}") for one in found]

    def check(
        self,
        dataset: str,
        promise: Promise,
        asked: Asked,
        totals: Totals | None = None,
        approvers: frozenset[str] = frozenset(),
    ) -> None:
        """Refused, with the first rule that is broken."""
        for one in self.broken(dataset, promise, asked, totals, approvers):
            raise Refused(str(one))


@dataclass(frozen=True, slots=True)
class Approval:
    """An approver's signature that one study may use one data set."""

    study: str
    dataset: str
    approver: str
    signature: str

    @classmethod
    def signed(cls, study: str, dataset: str, key: SigningKey) -> Approval:
        message = canonical(_approved(study, dataset))
        return cls(study, dataset, key.public_key, key.sign(message))

    @property
    def holds(self) -> bool:
        message = canonical(_approved(self.study, self.dataset))
        return signed_by(self.approver, self.signature, message)

    @classmethod
    def load(cls, path: Path) -> Approval:
        where = str(path)
        names = [f.name for f in fields(cls)]
        text = reading.read_text(path, "An approver writes it: tacit policy approve STUDY --out")
        table = reading.only_known(reading.toml_of(text, where), ["format", *names], where)
        return cls(*(reading.line(table.get(name), f"{where}, {name}") for name in names))

    def to_toml(self) -> str:
        values = {f.name: getattr(self, f.name) for f in fields(self)}
        return "\n".join(lines_of({"format": APPROVAL, **values})) + "\n"


APPROVAL = "tacit approval 1"
DISTINCT = "tacit distinct 1"
_BARE = re.compile(r"[A-Za-z0-9_-]+")


def _approved(study: str, dataset: str) -> dict[str, str]:
    return {"format": APPROVAL, "study": study, "dataset": dataset}


def distinct_digest(dataset: str, other: str, reason: str) -> str:
    """What approvers sign, as they sign a study's digest, if two data sets that look alike have no
    records in common; of the two names, the first in order stands in the approval."""
    names = sorted((dataset, other))
    return digest({"format": DISTINCT, "datasets": names, "reason": reason})


def folded(name: str) -> str:
    """Names that people would read as one are one: capitals, accents, widths (Unicode's NFKC, and
    its case folding)."""
    return unicodedata.normalize("NFKC", unicodedata.normalize("NFKC", name).casefold())


def _datasets(table: Any, where: str) -> dict[str, Rules]:
    if not isinstance(table, dict) or not table:
        raise InputError(
            f'{where}: name data sets, such as [datasets.patients], or [datasets."*"] for all that '
            "are not named."
        )
    if len(table) > MAX_DATASETS:
        raise InputError(f"{where}: {len(table)} data sets; name at most {MAX_DATASETS}.")
    known: dict[str, str] = {}
    for name in table:
        reading.line(name, f"{where}, the name of a data set")
        other = known.setdefault(folded(name), name)
        if other != name:
            raise InputError(
                f"{where}: data sets {other!r} and {name!r} have the same name, but for capitals "
                "or the way that letters are stored: keep one table."
            )
    return {name: _rules(body, f"{where}, [datasets.{name}]") for name, body in table.items()}


def _rules(body: Any, where: str) -> Rules:
    known = [f.name for f in fields(Rules)]
    table = reading.only_known(body, known, where)
    return Rules(**{name: _READERS[name](v, f"{where}, {name}") for name, v in table.items()})


def _delta(value: Any, where: str) -> float:
    return reading.number(value, where, below=1, zero=True)


def _unit(value: Any, where: str) -> Unit:
    return Unit(_one_of(value, [str(unit) for unit in Unit], where))


def _one_of(value: Any, known: list[str], where: str) -> str:
    if value not in known:
        raise InputError(f"{where}: must be one of {', '.join(map(repr, known))}.")
    return str(value)


def _flag(value: Any, where: str) -> bool:
    if not isinstance(value, bool):
        raise InputError(f"{where}: must be true or false.")
    return value


def read_trust(value: Any, where: str) -> Trust:
    """A number of servers, or the public keys of some."""
    if not isinstance(value, list):
        return reading.whole_number(value, where, reading.MAX_LIST)
    found = reading.keys(value, where)
    if not found:
        raise InputError(f"{where}: name at least one server, or give a number.")
    return found


def _approval(value: Any, where: str) -> str:
    return _one_of(value, ["policy", "each study"], where)


_READERS: dict[str, Callable[[Any, str], Any]] = {
    **dict.fromkeys(("programs", "columns"), reading.lines),
    **dict.fromkeys(("authors", "servers"), reading.keys),
    **dict.fromkeys(("epsilon_per_study", "epsilon_per_year"), reading.number),
    **dict.fromkeys(("delta_per_study", "delta_per_year"), _delta),
    "headerless": _flag,
    "person": reading.line,
    "unit": _unit,
    "trust": read_trust,
    "approval": _approval,
}


def _signatures(table: Any, where: str) -> dict[str, str]:
    if not isinstance(table, dict) or len(table) > MAX_APPROVERS:
        raise InputError(f"{where}, [signatures]: is written by `tacit policy sign`.")
    reading.keys(list(table), f"{where}, [signatures]")
    for key, signature in table.items():
        if not isinstance(signature, str) or not SIGNATURE.fullmatch(signature):
            raise InputError(
                f"{where}, [signatures]: that of {key} has not 128 hexadecimal digits in small "
                "letters. Sign anew: tacit policy sign FILE"
            )
    return dict(table)


def _plain(rules: Rules) -> dict[str, Any]:
    """What is stated, in the order of the fields."""
    values = {f.name: getattr(rules, f.name) for f in fields(Rules)}
    stated = {name: value for name, value in values.items() if value is not None}
    return {n: list(v) if isinstance(v, tuple) else _text(v) for n, v in stated.items()}


def _text(value: Any) -> Any:
    return str(value) if isinstance(value, str) else value


def _exact(value: Any) -> Any:
    """Plain data that no reader's floating point can change."""
    if isinstance(value, float):
        return repr(value)
    if isinstance(value, dict):
        return {key: _exact(v) for key, v in value.items()}
    return [_exact(v) for v in value] if isinstance(value, list) else value


def lines_of(table: Mapping[str, Any]) -> list[str]:
    """Texts are printable lines, so that JSON's spelling of them, of numbers and of lists is TOML's
    too."""
    return [f"{key} = {json.dumps(value, ensure_ascii=False)}" for key, value in table.items()]


def _quoted(name: str) -> str:
    return json.dumps(name, ensure_ascii=False)
