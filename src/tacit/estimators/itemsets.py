"""Frequent itemsets and association rules."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, Self

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_is_fitted, validate_data

from tacit.channels.central import Central
from tacit.crypto.signing import digest
from tacit.data.records import ArrayRecords
from tacit.data.schema import Column, Schema
from tacit.estimators.base import randomness_of, signing_key
from tacit.privacy.ledger import Ledger
from tacit.privacy.promise import Promise
from tacit.programs.files import to_bytes
from tacit.programs.itemsets import FrequentItemsets as Program
from tacit.programs.rules import Rules, association_rules

__all__ = ["FrequentItemsets"]


class FrequentItemsets(BaseEstimator):
    """Sets of items that many records hold, by noisy Apriori.

    X has one row per record and one column per item, 0 or 1. `longest` is public: no more items of
    a record count than that; with None, all columns may (and the noise grows with them).
    """

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
        program = Program(self.min_support, self.max_length, self.longest)
        ledger = None if self.ledger is None else Ledger(self.ledger)
        channel = Central(
            randomness=randomness_of(self.random_state), ledger=ledger, dataset=self.dataset
        )
        outcome = channel.run(program, ArrayRecords((X > 0.5).astype(np.float64)), schema, promise)
        subject = digest(to_bytes(outcome.model))
        self.certificate_ = replace(outcome.certificate, subject=subject).signed(key)
        self._model = outcome.model
        self.itemsets_ = outcome.model.named()
        self.support_ = outcome.model.support
        return self

    def rules(self, min_confidence: float = 0.8) -> Rules:
        """Rules "who has these also has those", from the noisy counts at no further cost."""
        check_is_fitted(self)
        return association_rules(self._model, min_confidence)
