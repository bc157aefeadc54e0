"""Privacy: promises, noise, mechanisms, accounting, the ledger, certificates and audits."""

from __future__ import annotations

from tacit.privacy.accounting import calibrate
from tacit.privacy.audit import audit
from tacit.privacy.bound import Bound, Grid, Norm
from tacit.privacy.certificate import Certificate
from tacit.privacy.clipping import clip_to_ball
from tacit.privacy.ledger import Ledger
from tacit.privacy.promise import Adjacency, Promise, Unit
from tacit.privacy.release import Release

__all__ = [
    "Adjacency",
    "Bound",
    "Certificate",
    "Grid",
    "Ledger",
    "Norm",
    "Promise",
    "Release",
    "Unit",
    "audit",
    "calibrate",
    "clip_to_ball",
]
