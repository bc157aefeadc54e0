"""Frequent itemsets and association rules."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.utils.validation import check_is_fitted

from tacit.channels.central import Central
from tacit.data.records import ArrayRecords
from tacit.data.schema import Column, Schema
from tacit.errors import UsageError
from tacit.estimators.arrays import validate_data
from tacit.estimators.baskets import Baskets, are_baskets, is_stream, read_baskets
from tacit.estimators.budget import ledger_of
from tacit.estimators.certified import (
    CertifiedEstimator,
    count_or_none,
    frozen,
    plain_number,
    signing_key,
    whole_number,
)
from tacit.estimators.conditions import ITEMS_READ_OFF, SCORES_ARE_EXACT, conditions
from tacit.estimators.expectation import warn_if_useless
from tacit.estimators.preprocessing import warn_of_fitted_steps
from tacit.estimators.randomness import RunDigest, randomness_of
from tacit.privacy.certificate import Certificate
from tacit.privacy.promise import Promise
from tacit.programs.expected import ExpectedError, expected_error
from tacit.programs.itemsets import FrequentItemsets as Program
from tacit.programs.itemsets_model import Itemsets
from tacit.programs.rules import Rules, association_rules

__all__ = ["FrequentItemsets"]


class FrequentItemsets(CertifiedEstimator):
    """Sets of items that many records hold, by noisy Apriori.

    X has one row per record and one column per item, 0 or 1; or it lists each record's items by
    name: `[["bread", "milk"], ["milk"]]`. `items` are then all that may occur, public; without them
    they are read off the baskets, and the certificate lists that as a condition. `longest` is
    public: no more items of a record count than that; with None, all may (and the noise grows).
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
        items: Any = None,
        adjacency: str = "add-remove",
        ledger: Any = None,
        dataset: str = "data",
        random_state: Any = None,
    ) -> None:
        self.epsilon = epsilon
        self.delta = delta
        self.min_support = min_support
        self.max_length = max_length
        self.longest = longest
        self.items = items
        self.adjacency = adjacency
        self.ledger = ledger
        self.dataset = dataset
        self.random_state = random_state

    def _new_program(self) -> Program:
        support = plain_number(self.min_support)
        if isinstance(support, bool) or not isinstance(support, (int, float)):
            raise UsageError("min_support must be a number: a share of the records.")
        length = whole_number(self.max_length, "max_length")
        return Program(support, length, count_or_none(self.longest, "longest"))

    def expected_error(self, n: int, features: int | None = None) -> ExpectedError:
        """What to expect of a fit on n records with so many items, before anything is spent: the
        least support that can be told from noise."""
        items = getattr(self, "n_features_in_", None) if features is None else features
        if items is None:
            raise UsageError("say how many items there will be: expected_error(n, features=…).")
        items = whole_number(items, "features")
        schema = Schema(columns=tuple(Column(name=f"x{i}", type="boolean") for i in range(items)))
        promise = Promise(self.epsilon, self.delta, adjacency=self.adjacency)  # type: ignore[arg-type]
        return expected_error(self._new_program(), schema, promise, n)

    def fit(self, X: Any, y: Any = None) -> Self:
        X = list(X) if is_stream(X) else X
        baskets = read_baskets(X, self.items) if are_baskets(X, self.items) else None
        if baskets is not None:
            X = baskets.has
        X = validate_data(self, X, dtype=np.float64)
        names = getattr(self, "feature_names_in_", [f"x{i}" for i in range(X.shape[1])])
        if baskets is not None:
            names = baskets.names
            self.feature_names_in_ = np.array(names, dtype=object)
        schema = Schema(columns=tuple(Column(name=str(n), type="boolean") for n in names))
        promise = Promise(self.epsilon, self.delta, adjacency=self.adjacency)  # type: ignore[arg-type]
        promise.check_population(len(X))
        key = signing_key()  # before anything is spent
        warn_of_fitted_steps(self)
        program = self._new_program()
        warn_if_useless(expected_error(program, schema, promise, len(X)), stacklevel=2)
        has = (X > 0.5).astype(np.float64)
        digest = RunDigest(type(self).__name__, program, promise)
        digest.add_numbers(has)
        ledger = ledger_of(self.ledger)
        randomness = randomness_of(self.random_state, digest)
        channel = Central(randomness=randomness, ledger=ledger, dataset=self.dataset)
        outcome = channel.run(program, ArrayRecords(has), schema, promise)
        outcome = replace(outcome, certificate=self._explained(outcome.certificate, baskets))
        self._keep(outcome, program, schema, key)
        return self

    def _explained(self, certificate: Certificate, baskets: Baskets | None) -> Certificate:
        """With what must be public, and what a ledger does not count."""
        if not certificate.promise.is_private:
            return certificate
        named = hasattr(self, "feature_names_in_")
        more = () if self.ledger is None else (SCORES_ARE_EXACT,)
        remarks = (*certificate.remarks, *more)
        stated = ["items"] if baskets is not None and baskets.stated else []
        listed = conditions(named=named, stated=stated)
        if baskets is not None and not baskets.stated:
            listed = (ITEMS_READ_OFF, *listed)
        return replace(certificate, conditions=listed, remarks=remarks)

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
