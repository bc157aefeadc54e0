"""Engines: where a holder's map runs."""

from __future__ import annotations

from tacit.engines.engine import Engine, Serial, Threads

__all__ = ["Engine", "Serial", "Threads"]
