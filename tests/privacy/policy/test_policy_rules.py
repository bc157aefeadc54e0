"""The rules of a policy: each refuses what it should, and all agree with an obviously right one."""

from __future__ import annotations

import itertools
import math
from dataclasses import fields
from fractions import Fraction
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tacit.errors import Refused
from tacit.privacy.policy import Asked, Policy, Rules, Totals
from tacit.privacy.policy.trust import costs, most_parts, noise_choice
from tacit.privacy.promise import Promise

KEYS = tuple(letter * 64 for letter in "abcdef")
ASKED = Asked(
    program="logistic",
    columns=("age", "ill"),
    author=KEYS[0],
    servers=(KEYS[1], KEYS[2], KEYS[3]),
    parts=1,
    study="5" * 64,
)


def policy(needed: int = 1, name: str = "patients", **rules: Any) -> Policy:
    document = {
        "format": "tacit policy 1",
        "name": "clinic",
        "approvers": [KEYS[4], KEYS[5]],
        "needed": needed,
        "datasets": {name: rules},
    }
    return Policy.from_dict(document)


def asked(**changes: Any) -> Asked:
    values = {f.name: getattr(ASKED, f.name) for f in fields(Asked)}
    return Asked(**{**values, **changes})


def broken(found: Policy, what: Asked = ASKED, promise: Promise | None = None) -> list[str]:
    return [one.rule for one in found.broken("patients", promise or Promise(1.0, 1e-6), what)]


@pytest.mark.parametrize(
    ("rule", "strict", "lax"),
    [
        ("programs", ["k-means"], ["logistic", "k-means"]),
        ("columns", ["age"], ["ill", "age", "sex"]),
        ("unit", "person", "record"),
        ("epsilon_per_study", 0.999, 1),
        ("epsilon_per_year", 0.5, 1.0),
        ("delta_per_study", 0, 1e-6),
        ("delta_per_year", 9e-7, 1e-6),
        ("authors", [KEYS[1]], [KEYS[0]]),
        ("servers", [KEYS[1], KEYS[2]], list(KEYS)),
        ("trust", [KEYS[0]], [KEYS[3]]),
        ("trust", 4, 3),  # says nothing of three servers
        ("approval", "each study", "policy"),
    ],
)
def test_each_rule_refuses_and_names_itself(rule: str, strict: Any, lax: Any) -> None:
    assert broken(policy(**{rule: lax})) == []
    assert broken(policy(**{rule: strict})) == [f"datasets.patients.{rule}"]
    with pytest.raises(
        Refused, match=rf"policy rule datasets\.patients\.{rule}: asked .*; allowed"
    ):
        policy(**{rule: strict}).check("patients", Promise(1.0, 1e-6), ASKED)


def test_what_is_not_named_is_refused_unless_there_is_a_table_for_it() -> None:
    assert broken(policy(name="others")) == ["datasets"]
    assert broken(policy(name="*", programs=[])) == ['datasets."*".programs']


def test_a_table_of_its_own_replaces_the_one_for_others() -> None:
    both = Policy.from_dict(
        {
            "format": "tacit policy 1",
            "name": "clinic",
            "approvers": [KEYS[0]],
            "datasets": {"*": {"programs": []}, "patients": {}},
        }
    )
    assert broken(both) == []


def test_columns_without_names_and_networks_for_all_are_refused() -> None:
    assert broken(policy(columns=["age"]), asked(columns=None)) == ["datasets.patients.columns"]
    assert broken(policy(servers=[KEYS[1]]), asked(servers=None)) == ["datasets.patients.servers"]
    assert broken(policy(authors=[KEYS[1]]), asked(author=None)) == ["datasets.patients.authors"]


def test_nothing_of_a_hostile_study_acts_on_a_terminal() -> None:
    hostile = asked(program="\x1b[2J", columns=("\x07" * 1000, "\u202e"))
    found = policy(programs=[], columns=[]).broken("patients", Promise(1.0), hostile)
    assert len(found) == 2
    assert all(str(one).isprintable() and len(str(one)) < 500 for one in found)


def test_trust_asks_nothing_where_servers_add_no_noise() -> None:
    assert broken(policy(trust=1), asked(parts=None)) == []


def test_approvals_count_once_and_by_approvers_alone() -> None:
    both, promise = policy(needed=2, approval="each study"), Promise(1.0)
    for signers, found in (
        ({KEYS[4]}, 1),
        ({KEYS[4], KEYS[0]}, 1),
        ({KEYS[4], KEYS[5]}, 0),
    ):
        rules = both.broken("patients", promise, ASKED, None, frozenset(signers))
        assert len(rules) == found


def test_a_refusal_says_what_was_spent_before() -> None:
    totals = Totals((Fraction(1), Fraction(0)), (Fraction(3), Fraction(0)))
    (one,) = policy(epsilon_per_year=2.5).broken("patients", Promise(1.0), ASKED, totals)
    assert "asked ε = 1 beside 2 of the last 365 days; allowed ε = 2.5" in str(one)
    assert "Wait until older spends are a year old" in one.remedy


def test_no_promise_at_all_breaks_every_ceiling() -> None:
    found = policy(epsilon_per_study=1e300)
    assert broken(found, promise=Promise(math.inf)) == ["datasets.patients.epsilon_per_study"]


# ── against a slow reference ──

names = st.sampled_from(["a", "b", "c"])
some = st.lists(names, unique=True, max_size=3).map(tuple)
some_keys = st.lists(st.sampled_from(KEYS), unique=True, max_size=4).map(tuple)
amounts = st.sampled_from([0.1, 0.2, 0.3, 1.0, 2.5])
rules = st.builds(
    Rules,
    programs=st.none() | some,
    columns=st.none() | some,
    unit=st.none() | st.sampled_from(["record", "person", "holder"]),
    epsilon_per_study=st.none() | amounts,
    epsilon_per_year=st.none() | amounts,
    delta_per_study=st.none() | st.sampled_from([0.0, 1e-6, 0.1]),
    delta_per_year=st.none() | st.sampled_from([0.0, 1e-6, 0.1]),
    authors=st.none() | some_keys,
    servers=st.none() | some_keys,
    trust=st.none() | st.integers(1, 5) | some_keys.filter(bool),
    approval=st.sampled_from(["policy", "each study"]),
)
requests = st.builds(
    Asked,
    program=names,
    columns=st.none() | some,
    author=st.none() | st.sampled_from(KEYS),
    servers=st.none() | some_keys,
    parts=st.none() | st.integers(1, 4),
    study=st.just("5" * 64),
)
promises = st.builds(
    Promise,
    amounts,
    st.sampled_from([0.0, 1e-6, 0.1]),
    st.sampled_from(["record", "person", "holder"]),
)


def reference(
    rule: Rules, what: Asked, promise: Promise, spent: list[float], year: float, signed: int
) -> set[str]:
    """Every rule by itself, as its sentence says it."""
    order = ["record", "person", "holder"]
    found = set()
    if rule.programs is not None and not any(p == what.program for p in rule.programs):
        found.add("programs")
    if rule.columns is not None and (
        what.columns is None or not all(c in rule.columns for c in what.columns)
    ):
        found.add("columns")
    if rule.unit is not None and order.index(promise.unit) < order.index(rule.unit):
        found.add("unit")
    study = sum(Fraction(str(e)) for e in [*spent, promise.epsilon])
    if rule.epsilon_per_study is not None and study > Fraction(str(rule.epsilon_per_study)):
        found.add("epsilon_per_study")
    whole = study + Fraction(str(year))
    if rule.epsilon_per_year is not None and whole > Fraction(str(rule.epsilon_per_year)):
        found.add("epsilon_per_year")
    if rule.delta_per_study is not None and promise.delta > rule.delta_per_study:
        found.add("delta_per_study")
    if rule.delta_per_year is not None and promise.delta > rule.delta_per_year:
        found.add("delta_per_year")
    if rule.authors is not None and (what.author is None or what.author not in rule.authors):
        found.add("authors")
    if rule.servers is not None and (
        what.servers is None or any(s not in rule.servers for s in what.servers)
    ):
        found.add("servers")
    servers, parts = what.servers, what.parts
    if rule.trust is not None and parts is not None and servers is not None:
        found |= set() if suffices(rule.trust, servers, parts) else {"trust"}
    if rule.approval == "each study" and signed < 1:
        found.add("approval")
    return found


def suffices(trust: Any, servers: tuple[str, ...], parts: int) -> bool:
    """By trying every coalition that the holder believes possible: whoever is in it takes its own
    part off the noise, and enough must stay (trust.md)."""
    if isinstance(trust, tuple):
        beliefs = [set(trust) & set(servers)]
    else:
        beliefs = [set(chosen) for chosen in itertools.combinations(servers, trust)]
    if not beliefs or not all(beliefs):
        return False
    for honest in beliefs:
        others = set(servers) - honest
        coalitions = [others]
        if len(honest) > 1:  # each of them is curious by itself; a single one has to be trusted
            coalitions += [others | {one} for one in honest]
        for coalition in coalitions:
            if len(servers) - len(coalition) < parts:
                return False
    return True


@given(
    rule=rules,
    what=requests,
    promise=promises,
    spent=st.lists(amounts, max_size=3),
    year=st.sampled_from([0.0, 0.1, 1.0]),
    signed=st.booleans(),
)
def test_agrees_with_the_reference(
    rule: Rules, what: Asked, promise: Promise, spent: list[float], year: float, signed: bool
) -> None:
    found = Policy("clinic", 1, (KEYS[0],), 1, {"patients": rule}, {})
    study = sum((Fraction(str(e)) for e in [*spent, promise.epsilon]), Fraction(0))
    delta = Fraction(repr(promise.delta))
    totals = Totals((study, delta), (study + Fraction(str(year)), delta))
    signers = frozenset({KEYS[0]} if signed else ())
    got = {one.rule for one in found.broken("patients", promise, what, totals, signers)}
    expected = reference(rule, what, promise, spent, year, int(signed))
    assert got == {f"datasets.patients.{name}" for name in expected}
    again = Policy.from_toml(found.to_toml())
    assert again == found
    assert again.digest == found.digest


# ── trust ──


@pytest.mark.parametrize(("servers", "trust"), list(itertools.product(range(2, 6), range(1, 7))))
def test_as_many_parts_as_suffice_and_no_more(servers: int, trust: int) -> None:
    keys = KEYS[:servers]
    most = most_parts(trust, keys)
    for parts in range(1, servers + 1):
        assert suffices(trust, keys, parts) == (parts <= most)


def test_the_most_suspicious_holder_decides_and_sees_what_it_costs() -> None:
    servers = KEYS[:4]
    parts, factor, found = costs({"a": 4, "b": 3, "c": (KEYS[0],)}, servers)
    assert (parts, factor) == (1, 2.0)
    assert noise_choice(parts) == "every-server"
    cost = {one.holder: (one.trusted, one.parts, one.alone, one.without) for one in found}
    assert cost["a"] == (4, 3, pytest.approx(math.sqrt(4 / 3)), 2.0)
    assert cost["b"] == (3, 2, pytest.approx(math.sqrt(2)), 2.0)
    assert cost["c"] == (1, 1, 2.0, pytest.approx(math.sqrt(2)))


def test_one_who_trusts_nobody_there_cannot_be_satisfied() -> None:
    parts, factor, (one,) = costs({"a": (KEYS[5],)}, KEYS[:3])
    assert (parts, factor, one.alone) == (0, None, None)
    assert one.without == pytest.approx(math.sqrt(3 / 2))
