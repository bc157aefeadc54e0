"""Limits hang on a data set's name: no other spelling of it, and no word but the approvers', gives
the same records a fresh one."""

from __future__ import annotations

import unicodedata
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tacit.crypto.signing import SigningKey
from tacit.data.digests import digests_of_arrays
from tacit.errors import InputError, LedgerTampered, Refused, UsageError
from tacit.privacy.ledger import Ledger
from tacit.privacy.policy import Approval, Asked, Policy
from tacit.privacy.policy.policy import distinct_digest, folded
from tacit.privacy.promise import Promise

ONE, TWO, OTHER = (SigningKey.generate() for _ in range(3))
ASKED = Asked(program="pca", columns=None, author=None)
RECORDS = digests_of_arrays(np.random.default_rng(0).normal(size=(200, 4)))
REASON = "two clinics that number alike"


def policy(datasets: dict[str, Any], needed: int = 1, *keys: SigningKey) -> Policy:
    keys = keys or (ONE, TWO)
    document = {
        "format": "tacit policy 1",
        "name": "clinic",
        "approvers": [key.public_key for key in keys],
        "needed": needed,
        "datasets": datasets,
    }
    made = Policy.from_dict(document)
    for key in keys:
        made = made.signed(key)
    return made


@pytest.fixture
def ledger(tmp_path: Path) -> Ledger:
    return Ledger(tmp_path / "ledger.db")


VARIANTS = ["CAFÉ", "Café", unicodedata.normalize("NFD", "café"), "\uff43afé"]


@pytest.mark.parametrize("variant", VARIANTS)
def test_another_spelling_is_no_other_data_set(ledger: Ledger, variant: str) -> None:
    ledger.allow("café", "record", 1.0)
    head = ledger.head
    for act in (
        lambda: ledger.allow(variant, "record", 1.0),
        lambda: ledger.decisions.revoke(variant),
        lambda: ledger.decisions.leave_out(variant, ["7"]),
        lambda: ledger.decisions.approve(Approval.signed("5" * 64, variant, ONE)),
    ):
        with pytest.raises(UsageError, match="is called 'café' here"):
            act()
    assert ledger.head == head
    ledger.allow("café", "person", 1.0)
    ledger.allow("café 2", "record", 1.0)


@pytest.mark.parametrize("variant", VARIANTS)
def test_a_policys_table_holds_for_every_spelling(ledger: Ledger, variant: str) -> None:
    ledger.allow(variant, "record", 1.0)  # before there was a policy
    ledger.decisions.use(policy({"café": {"programs": []}, "*": {}}))
    ledger.allow(variant, "record", 2.0)
    with pytest.raises(Refused, match="programs"):
        ledger.reserve(Promise(1.0), variant, "x", asked=ASKED)


def test_what_is_revoked_or_named_by_a_policy_is_a_known_name(ledger: Ledger) -> None:
    ledger.decisions.revoke("visits")
    ledger.decisions.use(policy({"patients": {}, "*": {}}))
    for name in ("Visits", "PATIENTS"):
        with pytest.raises(UsageError, match="is called"):
            ledger.allow(name, "record", 1.0)
    ledger.allow("patients", "record", 1.0)


def test_a_policy_has_one_table_for_one_name() -> None:
    with pytest.raises(InputError, match="have the same name"):
        policy({"café": {}, "Café": {}})


@given(st.text(max_size=20))
def test_folding_twice_is_folding_once_and_every_form_folds_alike(name: str) -> None:
    assert folded(folded(name)) == folded(name)
    for form in ("NFC", "NFD", "NFKC", "NFKD"):
        assert folded(unicodedata.normalize(form, name)) == folded(name)


# ── two data sets that look alike ──


def alike(ledger: Ledger) -> None:
    for name in ("a", "b"):
        ledger.allow(name, "record", 1.0)
    ledger.reserve(Promise(1.0), "a", "x", asked=ASKED, records=RECORDS).commit()


def charged(ledger: Ledger) -> None:
    ledger.reserve(Promise(1.0), "b", "x", asked=ASKED, records=RECORDS).commit()


def test_under_a_policy_enough_approvers_sign_that_they_are_distinct(ledger: Ledger) -> None:
    ledger.decisions.use(policy({"*": {"epsilon_per_year": 1.0}}, 2))
    alike(ledger)
    subject = distinct_digest("b", "a", REASON), "a"
    with pytest.raises(Refused, match="0 have"):
        ledger.state_distinct("b", "a", REASON)
    ledger.decisions.approve(Approval.signed(*subject, ONE))
    with pytest.raises(Refused, match="is not an approver"):
        ledger.decisions.approve(Approval.signed(*subject, OTHER))
    with pytest.raises(Refused, match="1 have"):
        ledger.state_distinct("b", "a", REASON)
    body = {"dataset": "b", "other": "a", "reason": REASON}
    with pytest.raises(LedgerTampered, match="must sign it"):
        ledger._append(lambda state: ("distinct", body))
    ledger.decisions.approve(Approval.signed(*subject, TWO))
    for other in (("b", "a", "another reason"), ("c", "a", REASON)):
        with pytest.raises(Refused, match="0 have"):
            ledger.state_distinct(*other)
    with pytest.raises(Refused):
        charged(ledger)
    ledger.state_distinct("a", "b", REASON)  # the order does not matter
    charged(ledger)
    ledger.verify()
