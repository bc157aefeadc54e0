"""Accounting: what releases cost together, and the least noise that keeps a promise.

losses      a release → a pair of laws that dominates it; the registry of mechanisms
samples     releases over one secret sample → one loss
pure        epsilons add up                     ┐
gaussian    any number of Gaussians, exactly    │ the accountants: each has
zcdp        one number ρ                        │ epsilon(losses, delta) and
renyi       curves over orders                  │ delta(losses, epsilon)
pld         privacy-loss distributions          ┘
compose     the least sound cost over all of them; parallel composition
calibrate   the inverse: promise → scales
spend_cost  all losses of a plan, as a ledger composes them with those of other studies
"""

from __future__ import annotations

from tacit.privacy.accounting.calibrate import calibrate, gaussian_scale
from tacit.privacy.accounting.compose import Cost, cost, delta_of, epsilon_of
from tacit.privacy.accounting.losses import LOSSES, GaussianLoss, Loss, PureLoss
from tacit.privacy.accounting.spend_cost import SpendCost

__all__ = [
    "LOSSES",
    "Cost",
    "GaussianLoss",
    "Loss",
    "PureLoss",
    "SpendCost",
    "calibrate",
    "cost",
    "delta_of",
    "epsilon_of",
    "gaussian_scale",
]
