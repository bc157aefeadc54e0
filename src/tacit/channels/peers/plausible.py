"""Models that cannot have come from honest members: longer than training and noise allow.

What a consortium's parties check of their own result (consortium/validity.py), strangers check of
every group's. A short garbage model passes; the vote sees to that (ensemble.md).
"""

from __future__ import annotations

from typing import Any

from tacit.channels.consortium.terms import JointTerms
from tacit.channels.consortium.validity import farthest, within

__all__ = ["farthest", "plausible", "within"]


def plausible(model: Any, terms: JointTerms) -> bool:
    """Whether a group under these terms can have published this model."""
    return within(model, terms.averaged, terms.study.schema, terms.validity_bound)
