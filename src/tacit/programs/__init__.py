"""Programs: what is learned, each written once."""

from __future__ import annotations

from tacit.programs.program import Block, Program, Query, Stage, norm_for

__all__ = ["Block", "Program", "Query", "Stage", "norm_for"]
