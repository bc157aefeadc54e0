"""Frequent itemsets and association rules."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.utils.validation import check_is_fitted, validate_data

from tacit.channels.central import Central
from tacit.data.records import ArrayRecords
from tacit.data.schema import Column, Schema
from tacit.estimators.certified import CertifiedEstimator, frozen, plain_number, signing_key
from tacit.estimators.conditions import SCORES_ARE_EXACT, conditions
from tacit.estimators.randomness import RunDigest, randomness_of
from tacit.privacy.certificate import Certificate
from tacit.privacy.ledger import Ledger
from tacit.privacy.promise import Promise
from tacit.programs.itemsets import FrequentItemsets as Program
from tacit.programs.itemsets_model import Itemsets
from tacit.programs.rules import Rules, association_rules

__all__ = ["FrequentItemsets"]


class FrequentItemsets(CertifiedEstimator):
    """Sets of items that many records hold, by noisy Apriori.

    X has one row per record and one column per item, 0 or 1. `longest` is public: no more items of
    a record count than that; with None, all columns may (and the noise grows with them).
    """

    _program_type = Program

    def __init__(
        self,
        epsilon: float = 1.0,
        delta: float = 1e-6,
        *,
        min_support: float = 0.1,
        max_length: int = 3,
        longest: int | None = None,
        adjacency: str = "add-remove",
        ledger: str | None = None,
        dataset: str = "data",
        random_state: Any = None,
    ) -> None:
        self.epsilon = epsilon
        self.delta = delta
        self.min_support = min_support
        self.max_length = max_length
        self.longest = longest
        self.adjacency = adjacency
        self.ledger = ledger
        self.dataset = dataset
        self.random_state = random_state

    def fit(self, X: Any, y: Any = None) -> Self:
        X = validate_data(self, X, dtype=np.float64)
        names = getattr(self, "feature_names_in_", [f"x{i}" for i in range(X.shape[1])])
        schema = Schema(columns=tuple(Column(name=str(n), type="boolean") for n in names))
        promise = Promise(self.epsilon, self.delta, adjacency=self.adjacency)  # type: ignore[arg-type]
        promise.check_population(len(X))
        key = signing_key()  # before anything is spent
        program = Program(*map(plain_number, (self.min_support, self.max_length, self.longest)))
        has = (X > 0.5).astype(np.float64)
        digest = RunDigest(type(self).__name__, program, promise)
        digest.add_numbers(has)
        ledger = None if self.ledger is None else Ledger(self.ledger)
        randomness = randomness_of(self.random_state, digest)
        channel = Central(randomness=randomness, ledger=ledger, dataset=self.dataset)
        outcome = channel.run(program, ArrayRecords(has), schema, promise)
        outcome = replace(outcome, certificate=self._explained(outcome.certificate))
        self._keep(outcome, program, schema, key)
        return self

    def _explained(self, certificate: Certificate) -> Certificate:
        """With what must be public, and what a ledger does not count."""
        if not certificate.promise.is_private:
            return certificate
        named = hasattr(self, "feature_names_in_")
        more = () if self.ledger is None else (SCORES_ARE_EXACT,)
        remarks = (*certificate.remarks, *more)
        return replace(certificate, conditions=conditions(named=named), remarks=remarks)

    @property
    def itemsets_(self) -> list[tuple[str, ...]]:
        model: Itemsets = self.model_
        return model.named()

    @property
    def support_(self) -> NDArray[np.float64]:
        return frozen(self.model_.support)

    def rules(self, min_confidence: float = 0.8) -> Rules:
        """Rules "who has these also has those", from the noisy counts at no further cost."""
        check_is_fitted(self)
        return association_rules(self.model_, min_confidence)
