"""What commands print: one JSON document for programs, words and tables for people."""

from __future__ import annotations

import json
import sys
from typing import TYPE_CHECKING, Any, NoReturn, TypeVar

import click

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from rich.console import Console

    from tacit.errors import TacitError

__all__ = ["fail", "json_option", "people", "print_document", "print_error"]

F = TypeVar("F", bound="Callable[..., Any]")


def json_option(command: F) -> F:
    """Add `--json`, passed to the command as `as_json`."""
    return click.option(
        "--json", "as_json", is_flag=True, help="Print one JSON document on standard output."
    )(command)


def print_document(document: Mapping[str, Any]) -> None:
    """The one JSON document of a `--json` run."""
    click.echo(json.dumps(document, indent=2, ensure_ascii=False))


def people(as_json: bool = False) -> Console:
    """Where words for people go: standard output, or standard error beside `--json`."""
    from rich.console import Console

    return Console(stderr=as_json, highlight=False, soft_wrap=True)


def fail(error: TacitError) -> NoReturn:
    """Leave with the error's code after the document was printed, so that it stays the only one."""
    print_error(type(error).__name__, str(error), as_json=False)
    raise click.exceptions.Exit(error.exit_code)


def print_error(kind: str, message: str, as_json: bool) -> None:
    if as_json:
        print_document({"error": {"kind": kind, "message": message}})
    print(f"tacit: {message}", file=sys.stderr)
