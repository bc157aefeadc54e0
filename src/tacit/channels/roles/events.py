"""What happens in a role, as JSON lines for programs and as words for people; never a secret."""

from __future__ import annotations

import json
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

__all__ = ["Events", "Tell"]

Tell = Callable[..., None]  # what happened, for people and pages: tell("round closed", round=3)


class Events:
    """Called with an event and its fields: `tell("round closed", round=3, holders=9)`.

    Each is one line of `events.jsonl` in the role's folder, which a dashboard may follow; `show`
    gets the same.
    """

    def __init__(
        self,
        folder: Path,
        role: str,
        study: str,
        show: Callable[[dict[str, Any]], None] | None = None,
    ) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self._file = (folder / "events.jsonl").open("a", encoding="utf-8")
        self._about, self._show = {"role": role, "study": study}, show

    def __call__(self, event: str, **fields: object) -> None:
        now = datetime.now(UTC).isoformat(timespec="milliseconds")
        line: dict[str, Any] = {"time": now, **self._about, "event": event, **fields}
        self._file.write(json.dumps(line, ensure_ascii=False, default=str) + "\n")
        self._file.flush()
        if self._show is not None:
            self._show(line)

    def close(self) -> None:
        self._file.close()
