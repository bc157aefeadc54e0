"""Certificates of 0.1 that its faults may have broken: readable, genuine, and not believed."""

from __future__ import annotations

import json
from dataclasses import replace
from fractions import Fraction
from pathlib import Path

import pytest

from tacit.cli.main import main
from tacit.crypto.signing import SigningKey
from tacit.errors import CertificateInvalid
from tacit.privacy import Bound, Certificate, Norm, Promise, Release
from tacit.privacy.certificate import Participation, Witness, statement
from tacit.privacy.certificate_parts import FORMAT, FORMAT_2

KEY = SigningKey.generate()
LAPLACE = Release("laplace", Bound(Norm.L1, Fraction(1)), Fraction(4))
SAMPLED = replace(LAPLACE, sampling=Fraction(1, 10))
WIDER = replace(SAMPLED, scale=Fraction(5))
WINDOWS = (replace(LAPLACE, part="window 1"), replace(LAPLACE, part="window 2"))
ASKED = Release("randomised-response", parameters={"m": Fraction(2), "p": Fraction(1, 2)})


def promise(unit: str = "record", adjacency: str = "add-remove", epsilon: float = 1.0) -> Promise:
    return Promise(epsilon, 0.0, unit, adjacency)  # type: ignore[arg-type]


def written(
    releases: tuple[Release, ...],
    promised: Promise,
    servers: int = 0,
    holders: int = 0,
    form: str = FORMAT_2,
) -> Certificate:
    """Signed in that format, with servers' words where it belongs to a study."""
    made = Certificate(
        promise=promised,
        releases=releases,
        trust="the holder",
        accountant="pure",
        program="counts 1",
        program_digest="00",
        schema_digest="00",
        subject="00",
        secure_randomness=True,
        format=form,
    )
    if holders:
        part = Participation(holders, holders, 1)
        said = statement("cafe", promised, releases, part, True, certificate_format=form)
        words = tuple(Witness(KEY.public_key, KEY.sign(said)) for _ in range(servers))
        made = replace(made, study="cafe", participation=part, witnesses=words)
    return made.signed(KEY)


BROKEN = {
    "blocks": ((SAMPLED, WIDER), promise(), 0, 0, "one secret sample"),
    # Equal blocks of one query were written as one release with a count.
    "equal blocks": ((replace(SAMPLED, count=20),), promise(), 0, 0, "one secret sample"),
    "holder": ((SAMPLED,), promise("holder"), 0, 0, "no sample was drawn"),
    "replace": (WINDOWS, promise(adjacency="replace"), 0, 0, "windows"),
    "replace, too dear": (WINDOWS, promise(adjacency="replace", epsilon=0.3), 0, 0, "windows"),
    "person's windows": (WINDOWS, promise("person"), 0, 0, "windows"),
    "holder's windows": (WINDOWS, promise("holder"), 0, 0, "windows"),
    "holder's windows, too dear": (WINDOWS, promise("holder", epsilon=0.3), 0, 0, "windows"),
    "persons": ((LAPLACE,), promise("person"), 0, 3, "several holders"),
    "servers": ((LAPLACE,), promise(), 2, 3, "nobody has checked"),
}
SOUND = {
    "plain": ((LAPLACE,), promise(), 0, 0),
    "one block": ((SAMPLED,), promise(), 0, 0),
    "windows": (WINDOWS, promise(), 0, 0),
    "other parts": (tuple(replace(r, part=f"{r.part} b") for r in WINDOWS), promise(), 0, 0),
    "a peer alone": ((LAPLACE,), promise("person"), 0, 1),
    "a crowd": ((ASKED, ASKED), promise("person", "replace"), 0, 2000),
}


@pytest.mark.parametrize("case", BROKEN)
def test_what_the_faults_may_have_broken(case: str) -> None:
    releases, promised, servers, holders, why = BROKEN[case]
    old = Certificate.from_json(written(releases, promised, servers, holders).to_json())
    verdict = old.verify(KEY.public_key)
    assert verdict.superseded is not None
    assert why in verdict.superseded
    # It is no excuse for a changed one, and nothing new is written off so.
    with pytest.raises(CertificateInvalid, match="signature"):
        replace(old, trust="nobody").verify()
    assert replace(old, format=FORMAT).superseded is None
    assert replace(old, promise=replace(promised, epsilon=float("inf"))).superseded is None


@pytest.mark.parametrize("case", SOUND)
def test_what_stands(case: str) -> None:
    verdict = written(*SOUND[case]).verify()
    assert verdict.superseded is None


@pytest.mark.parametrize("unit", ["person", "holder"])
def test_parts_of_a_new_certificate_are_disjoint_for_records_only(unit: str) -> None:
    """Two windows of ε = 1/4 each: a record has one of them, a person both."""
    assert written(WINDOWS, promise(), form=FORMAT).verify().epsilon == pytest.approx(0.25)
    both = written(WINDOWS, promise(unit, epsilon=0.5), form=FORMAT)
    assert both.verify().epsilon == pytest.approx(0.5)
    with pytest.raises(CertificateInvalid, match="more than the promised"):
        written(WINDOWS, promise(unit, epsilon=0.3), form=FORMAT).verify()
    with pytest.raises(CertificateInvalid, match="more than the promised"):
        written(WINDOWS, promise(adjacency="replace", epsilon=0.3), form=FORMAT).verify()


def verified(path: Path, *words: str) -> int:
    with pytest.raises(SystemExit) as left:
        main(["verify", str(path), *words])
    assert isinstance(left.value.code, int)
    return left.value.code


def test_the_command_says_so(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "model.json.certificate.json"
    path.write_text(written((SAMPLED, WIDER), promise()).to_json())
    assert verified(path) == 6
    printed = capsys.readouterr()
    assert "superseded: promise not established" in printed.out
    assert "certificate holds" not in printed.out
    assert "one secret sample" in printed.err
    assert verified(path, "--json") == 6
    document = json.loads(capsys.readouterr().out)
    assert document["valid"] is False
    assert "one secret sample" in document["superseded"]


def test_conditions_are_printed_and_are_no_failure(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "model.json.certificate.json"
    made = written((LAPLACE,), promise("person"), form=FORMAT)
    made = replace(made, conditions=("Classes are public.",), holders_per_person=2).signed(KEY)
    path.write_text(made.to_json())
    assert verified(path) == 0
    out = capsys.readouterr().out
    assert "Classes are public." in out
    assert "up to 2 holders" in " ".join(out.split())
    assert verified(path, "--json") == 0
    document = json.loads(capsys.readouterr().out)
    assert document["conditions"] == ["Classes are public."]
    assert document["holders_per_person"] == 2
    assert document["superseded"] is None
