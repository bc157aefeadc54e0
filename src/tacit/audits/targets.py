"""Every white-box game by the names that `tacit audit` takes."""

from __future__ import annotations

from collections.abc import Callable

from tacit.audits.attacks import ATTACKS
from tacit.audits.game import WhiteBox
from tacit.audits.programs import PROGRAM_GAMES

__all__ = ["WHITE_BOX_TARGETS"]

# Some are the same game under several names: it is played once where all are played.
WHITE_BOX_TARGETS: dict[str, Callable[[], WhiteBox]] = {
    **PROGRAM_GAMES,
    "averaged-logistic": ATTACKS["consortium"],
    **ATTACKS,
}
