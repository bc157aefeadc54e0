"""How objects look in a notebook: small HTML tables, every text escaped.

Names and notes come from files and from other institutions, so that nothing is taken for markup.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from html import escape

__all__ = ["grid", "listed", "table"]

CELL = "text-align:left;padding:2px 10px 2px 0;vertical-align:top"


def table(title: str, rows: Iterable[tuple[str, str]]) -> str:
    """A heading, and one line for each name with its value."""
    lines = (
        f'<tr><th style="{CELL}">{escape(name)}</th><td style="{CELL}">{escape(value)}</td></tr>'
        for name, value in rows
    )
    return f"<div><strong>{escape(title)}</strong><table>{''.join(lines)}</table></div>"


def grid(title: str, head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """A heading, and a table with a line of column names."""
    top = "".join(f'<th style="{CELL}">{escape(name)}</th>' for name in head)
    body = "".join(
        f"<tr>{''.join(f'<td style={chr(34)}{CELL}{chr(34)}>{escape(v)}</td>' for v in row)}</tr>"
        for row in rows
    )
    heading = f"<strong>{escape(title)}</strong>"
    return f"<div>{heading}<table><tr>{top}</tr>{body}</table></div>"


def listed(title: str, texts: Sequence[str]) -> str:
    """Sentences under a heading that opens; nothing if there are none."""
    if not texts:
        return ""
    items = "".join(f"<li>{escape(text)}</li>" for text in texts)
    return f"<details><summary>{escape(title)} ({len(texts)})</summary><ul>{items}</ul></details>"
