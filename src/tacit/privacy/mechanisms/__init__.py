"""Mechanisms, each in the form: bound → calibrated scale → release → spend.

Beside each file stands its proof note (`*.md`): what is assumed, what is claimed, why.
"""

from __future__ import annotations

from tacit.privacy.mechanisms.gaussian import Gaussian
from tacit.privacy.mechanisms.hadamard import HadamardResponse
from tacit.privacy.mechanisms.l2_laplace import L2Laplace
from tacit.privacy.mechanisms.laplace import Laplace
from tacit.privacy.mechanisms.mechanism import Mechanism
from tacit.privacy.mechanisms.perturbation import PQPerturbation
from tacit.privacy.mechanisms.quantile import Quantile
from tacit.privacy.mechanisms.response import RandomisedResponse
from tacit.privacy.mechanisms.selection import Exponential, PermuteAndFlip
from tacit.privacy.mechanisms.sparse_vector import Answer, SparseVector
from tacit.privacy.mechanisms.subset import SubsetSelection

__all__ = [
    "Answer",
    "Exponential",
    "Gaussian",
    "HadamardResponse",
    "L2Laplace",
    "Laplace",
    "Mechanism",
    "PQPerturbation",
    "PermuteAndFlip",
    "Quantile",
    "RandomisedResponse",
    "SparseVector",
    "SubsetSelection",
]
