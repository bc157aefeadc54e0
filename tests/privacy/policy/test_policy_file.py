"""Policy files: hostile ones are refused with the place; signatures cover all that counts."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tacit.crypto.prg import SeededRandomness
from tacit.crypto.signing import SigningKey
from tacit.errors import CheckFailed, InputError, Refused
from tacit.privacy.policy import Approval, Policy, TrustStatement

ONE, TWO, THREE = (SigningKey.generate(SeededRandomness(name)) for name in ("one", "two", "three"))
A, B = ONE.public_key, TWO.public_key


def document(**changes: Any) -> dict[str, Any]:
    plain = {
        "format": "tacit policy 1",
        "name": "clinic",
        "number": 1,
        "approvers": [A],
        "needed": 1,
        "datasets": {"*": {"programs": ["logistic"], "epsilon_per_year": 1.0}},
    }
    return {**plain, **changes}


def rules(**table: Any) -> dict[str, Any]:
    return document(datasets={"x": table})


@pytest.mark.parametrize(
    ("found", "says"),
    [
        (document(aprovers=[A]), "unknown 'aprovers'. Did you mean 'approvers'?"),
        (
            rules(epsilon_per_years=1),
            "unknown 'epsilon_per_years'. Did you mean 'epsilon_per_year'",
        ),
        (rules(zzz=1), "unknown 'zzz'. There are: programs, columns"),
        (document(format="tacit policy 2"), "format must be 'tacit policy 1'"),
        (document(name="a\x1b[2Jb"), "name: must be one printable line"),
        (document(name="n" * 201), "name: must be one printable line"),
        (document(name=7), "name: must be one printable line"),
        (document(approvers=[]), "approvers: name 1 to 100"),
        (document(approvers=[A, A]), "stands there twice"),
        (document(approvers=["ab"]), "is not a public key"),
        (document(approvers=A), "approvers: must be a list"),
        (document(needed=2), "needed: must be a whole number from 1 to 1, not 2"),
        (document(needed=True), "needed: must be a whole number"),
        (document(number=0), "number: must be a whole number from 1"),
        (document(datasets={}), "name data sets"),
        (document(datasets={"x": 1}), "must be a table"),
        (document(datasets={"x\n": {}}), "the name of a data set"),
        (document(datasets={str(i): {} for i in range(1001)}), "1001 data sets; name at most 1000"),
        (rules(epsilon_per_study=float("nan")), "must be a finite number above 0, not nan"),
        (rules(epsilon_per_study=float("inf")), "must be a finite number above 0, not inf"),
        (rules(epsilon_per_study=-1), "must be a finite number above 0, not -1"),
        (rules(epsilon_per_study=0), "must be a finite number above 0, not 0"),
        (rules(epsilon_per_study="1"), "must be a finite number above 0, not '1'"),
        (rules(epsilon_per_study=True), "must be a finite number above 0, not True"),
        (rules(epsilon_per_study=10**400), "not a very long number"),
        (rules(epsilon_per_study=[1]), "not a list"),
        (rules(delta_per_year=1), "from 0 on and below 1, not 1"),
        (rules(unit="people"), "must be one of 'record', 'person', 'holder'"),
        (rules(unit=[]), "must be one of"),
        (rules(approval="maybe"), "must be one of 'policy', 'each study'"),
        (rules(trust=0), "trust: must be a whole number from 1"),
        (rules(trust=[]), "name at least one server"),
        (rules(trust=True), "trust: must be a whole number"),
        (rules(programs="logistic"), "programs: must be a list"),
        (rules(programs=["a\u202eb"]), "programs, entry 1: must be one printable line"),
        (rules(programs=[str(i) for i in range(1001)]), "a list of at most 1000"),
        (rules(columns=["a", "a"]), "'a' stands there twice"),
        (document(signatures={A: "00"}), "128 hexadecimal digits"),
        (document(signatures=[]), "[signatures]"),
    ],
)
def test_what_is_wrong_is_said_with_its_place(found: dict[str, Any], says: str) -> None:
    with pytest.raises(InputError) as error:
        Policy.from_dict(found, "my.toml")
    assert says in str(error.value)
    assert str(error.value).startswith("my.toml")
    assert str(error.value).isprintable()
    assert len(str(error.value)) < 500


@pytest.mark.parametrize(
    "text",
    [
        "x = " + "[" * 100_000,
        "".join(f"k{i} = 1\n" for i in range(1_000_000)),
        "a." * 100_000 + "b = 1",
        "x = {" + "a." * 100_000 + "b = 1}",
        """y = \"\"\" " \"\"\" """ + "a." * 100_000 + "b = 1",
        "y = '\"'\n" + "a." * 100_000 + 'b = "1"',
        'x = {k = "\u2028", ' + "a." * 100_000 + 'b = "1"}',
        "\x00",
        "name = 'a'\nname = 'b'",
        "",
    ],
    ids=[
        "deep",
        "million keys",
        "dotted",
        "inline",
        "quotes",
        "quote",
        "line",
        "nul",
        "twice",
        "empty",
    ],
)
def test_hostile_texts_are_refused(tmp_path: Path, text: str) -> None:
    path = tmp_path / "p.toml"
    path.write_text(text)
    with pytest.raises(InputError):
        Policy.load(path)


def test_a_file_that_is_no_text_or_not_there(tmp_path: Path) -> None:
    (tmp_path / "p.toml").write_bytes(b"\xff\xfe")
    with pytest.raises(InputError, match="is not UTF-8"):
        Policy.load(tmp_path / "p.toml")
    with pytest.raises(InputError, match="tacit policy new"):
        Policy.load(tmp_path / "q.toml")


json_like = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner),
    max_leaves=8,
)


@given(field=st.sampled_from([*document(), "signatures"]), value=json_like)
def test_any_value_is_read_or_refused(field: str, value: Any) -> None:
    try:
        found = Policy.from_dict(document(**{field: value}))
    except InputError:
        return
    assert Policy.from_toml(found.to_toml()) == found


# ── signatures ──


def test_a_policy_needs_its_approvers_signatures() -> None:
    plain = Policy.from_dict(document(approvers=[A, B], needed=2))
    for one in (plain, plain.signed(ONE), plain.signed(ONE).signed(THREE)):
        with pytest.raises(Refused, match=r"signed by \d of its own approvers, and 2 must"):
            one.check_signatures()
    plain.signed(ONE).signed(TWO).check_signatures()


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ('name = "clinic"', 'name = "clinics"'),
        ("number = 1", "number = 2"),
        ("epsilon_per_year = 1.0", "epsilon_per_year = 100.0"),
        ('programs = ["logistic"]', 'programs = ["logistic", "k-means"]'),
        ('datasets."*"', 'datasets."x"'),
    ],
)
def test_what_was_changed_after_signing_is_noticed(before: str, after: str) -> None:
    text = Policy.from_dict(document()).signed(ONE).to_toml()
    assert before in text
    with pytest.raises(CheckFailed, match="was changed after signing"):
        Policy.from_toml(text.replace(before, after)).check_signatures()


def test_the_next_policy_is_signed_by_the_approvers_of_the_last() -> None:
    first = Policy.from_dict(document()).signed(ONE)
    second = Policy.from_dict(document(number=2, approvers=[B])).signed(TWO)
    with pytest.raises(Refused, match="0 of the earlier policy's approvers"):
        second.check_signatures(first)
    second.signed(ONE).check_signatures(first)
    alone = Policy.from_dict(document(number=2, approvers=[B])).signed(ONE)
    with pytest.raises(Refused, match="0 of its own approvers"):
        alone.check_signatures(first)


def test_an_older_policy_does_not_come_back() -> None:
    first, second = (Policy.from_dict(document(number=n)).signed(ONE) for n in (1, 2))
    for old in (first, second):
        with pytest.raises(Refused, match="an older policy does not come back"):
            old.check_signatures(second)


def test_an_approval_holds_for_its_study_and_data_set_alone(tmp_path: Path) -> None:
    made = Approval.signed("5" * 64, "patients", ONE)
    assert made.holds
    assert not Approval(made.study, "others", made.approver, made.signature).holds
    assert not Approval("6" * 64, made.dataset, made.approver, made.signature).holds
    assert not Approval(made.study, made.dataset, B, made.signature).holds
    (tmp_path / "a.toml").write_text(made.to_toml())
    assert Approval.load(tmp_path / "a.toml") == made


@pytest.mark.parametrize("servers", [3, (A, B)])
def test_a_statement_of_trust_is_its_holders(tmp_path: Path, servers: Any) -> None:
    path = tmp_path / "me.trust.toml"
    made = TrustStatement.signed(servers, ONE)
    path.write_text(made.to_toml())
    assert TrustStatement.load(path) == made
    path.write_text(made.to_toml().replace(made.holder, THREE.public_key))
    with pytest.raises(CheckFailed):
        TrustStatement.load(path)
    path.write_text(TrustStatement.signed(2, ONE).to_toml().replace("servers = 2", "servers = 4"))
    with pytest.raises(CheckFailed):
        TrustStatement.load(path)
