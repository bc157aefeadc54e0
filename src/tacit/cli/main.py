"""`tacit`: a thin group whose commands are imported only when they are called."""

from __future__ import annotations

import importlib
import os
import sys

import click

from tacit import __version__
from tacit.cli.output import print_error
from tacit.errors import TacitError

__all__ = ["cli", "main"]

# name → (module:attribute, one line of help); the help stands here so that `tacit --help` need not
# import numpy and friends.
COMMANDS = {
    "demo": ("tacit.cli.demo:demo", "The main job on one machine, without configuration."),
    "serve": ("tacit.cli.serve:serve", "Run one role: server, aggregator, relay, collector."),
    "me": ("tacit.cli.me:me", "Your own data on your own machine: import, ask, learn."),
    "crowd": ("tacit.cli.crowd:crowd", "A study over many people with one row each."),
    "peer": ("tacit.cli.peer:peer", "Take part in a network of peers without a centre."),
    "join": ("tacit.cli.join:join", "Take part in a study as a holder."),
    "study": ("tacit.cli.study:study", "Write, check, explain and sign a study file."),
    "program": ("tacit.cli.program:program", "Programs that studies may run here."),
    "keys": ("tacit.cli.keys:keys", "Make and show identities."),
    "budget": ("tacit.cli.budget:budget", "Show or set what a holder's ledger allows."),
    "policy": ("tacit.cli.policy:policy", "What a holder permits, and who decides it."),
    "backup": ("tacit.cli.backup:backup", "Copy a role's folder, your home, or a ledger."),
    "restore": ("tacit.cli.backup:restore", "Put such a copy back, soundly."),
    "verify": ("tacit.cli.verify:verify", "Recompute a certificate and check its signature."),
    "predict": ("tacit.cli.predict:predict", "Use a model on the records of a file."),
    "show": ("tacit.cli.show:show", "What a model says, with its noise."),
    "audit": ("tacit.cli.audit:audit", "Play the distinguishing game against a mechanism."),
    "bench": ("tacit.cli.bench:bench", "Side-by-side measurements, printed as ratios."),
    "data": ("tacit.cli.data:data", "Data sets and schemas: list, fetch, describe."),
}


class LateGroup(click.Group):
    """A group that knows its commands by name and imports one when it runs."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in COMMANDS:
            return None
        module, attribute = COMMANDS[cmd_name][0].split(":")
        command: click.Command = getattr(importlib.import_module(module), attribute)
        return command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        with formatter.section("Commands"):
            formatter.write_dl([(name, text) for name, (_, text) in COMMANDS.items()])


@click.group(cls=LateGroup, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(__version__, prog_name="tacit")
def cli() -> None:
    """Learn together from data that may not be pooled, and prove how little was given away.

    Every command takes --json: one JSON document on standard output, nothing else there.
    Exit codes: 0 done, 1 internal fault, 2 wrong usage, 3 bad input, 4 refused by a budget or
    policy, 5 others not reached in time, 6 a check failed, 7 a disk is full or cannot be written.
    """


def main(arguments: list[str] | None = None) -> None:
    """Run the command line and leave with the exit code of the error tree."""
    words = sys.argv[1:] if arguments is None else arguments
    as_json = "--json" in words
    try:
        code = cli.main(args=words, prog_name="tacit", standalone_mode=False)
    except click.exceptions.Abort:
        print_error("Stopped", "stopped by the user.", as_json)
        code = 130
    except click.ClickException as error:
        context = getattr(error, "ctx", None)
        hint = f" Try: {context.command_path} --help" if context else ""
        print_error("UsageError", error.format_message() + hint, as_json)
        code = 2
    except TacitError as error:
        print_error(type(error).__name__, str(error), as_json)
        code = error.exit_code
    except Exception as error:  # the last line of defence: no traceback for people
        fault = _storage_fault(error)
        if fault is not None:
            print_error(type(fault).__name__, str(fault), as_json)
            sys.exit(fault.exit_code)
        if os.environ.get("TACIT_DEBUG"):
            raise
        text = f"internal fault ({type(error).__name__}). Set TACIT_DEBUG=1 to see where."
        print_error("InternalFault", text, as_json)
        code = 1
    sys.exit(code if isinstance(code, int) else 0)


def _storage_fault(error: Exception) -> TacitError | None:
    from tacit.channels.roles.storage import storage_error, storage_problem

    problem = storage_problem(error)
    return None if problem is None else storage_error(problem)
