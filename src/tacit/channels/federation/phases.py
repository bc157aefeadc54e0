"""What an aggregator is at, and what it asks every server then."""

from __future__ import annotations

from enum import StrEnum

__all__ = ["QUESTIONS", "Phase"]


class Phase(StrEnum):
    GATHERING = "gathering"
    OPENING = "opening"
    COLLECTING = "collecting"
    COUNTING = "counting"
    SEALING = "sealing"
    CLOSING = "closing"
    ATTESTING = "attesting"
    FINISHING = "finishing"
    OVER = "over"
    STOPPING = "stopping"


# What each server is asked in each phase.
QUESTIONS = {
    Phase.OPENING: "open",
    Phase.COUNTING: "present",
    Phase.SEALING: "seal",
    Phase.CLOSING: "close",
    Phase.ATTESTING: "attest",
    Phase.FINISHING: "finish",
    Phase.STOPPING: "finish",
}
