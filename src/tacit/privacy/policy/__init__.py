"""What a holder permits, beside how much: a signed policy, and what a spend says of itself.

rules.py      the rules for one data set, and what breaks them: pure
policy.py     a policy, its file and its signatures; approvals of single studies
reading.py    hostile files: every value checked, every size bounded
trust.py      how much noise a holder's trust in servers calls for, proved in trust.md
statement.py  that trust, signed, for the author of a study
left_out.py   people who asked to be left out, as keyed digests
"""

from __future__ import annotations

from tacit.privacy.policy.left_out import LeftOut
from tacit.privacy.policy.policy import Approval, Policy
from tacit.privacy.policy.rules import Asked, Broken, Rules, Totals
from tacit.privacy.policy.statement import TrustStatement

__all__ = [
    "Approval",
    "Asked",
    "Broken",
    "LeftOut",
    "Policy",
    "Rules",
    "Totals",
    "TrustStatement",
]
