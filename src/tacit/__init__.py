"""tacit: learn together from data that may not be pooled, and prove how little was given away."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tacit.privacy.promise import Promise

__version__ = "0.2.0"
__all__ = ["Promise", "__version__"]


def __getattr__(name: str) -> object:
    # Late, so that `tacit --help` does not pay for numpy.
    if name == "Promise":
        from tacit.privacy.promise import Promise

        return Promise
    raise AttributeError(f"module 'tacit' has no attribute {name!r}")
