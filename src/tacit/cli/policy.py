"""`tacit policy`: what a holder permits, who decides it, and who is left out."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from tacit.cli.keys import HOLDER, key_named
from tacit.cli.ledger_there import ledger_there
from tacit.cli.output import fail, json_option, people, print_document
from tacit.cli.policy_leave import leave_out, ledger_option, left_out, revoke
from tacit.errors import InputError, Refused, UsageError
from tacit.home import ledger_path

if TYPE_CHECKING:
    from tacit.privacy.ledger import Ledger
    from tacit.privacy.policy import Asked, Broken, Policy
    from tacit.privacy.promise import Promise

__all__ = ["policy"]

file_argument = click.argument("file", type=click.Path(path_type=Path))
study_argument = click.argument("study_file", metavar="STUDY", type=click.Path(path_type=Path))
key_option = click.option(
    "--key", "key_name", default=HOLDER, show_default=True, help="Your identity."
)
dataset_option = click.option("--dataset", required=True, help="The data set, as in your ledger.")


@click.group()
def policy() -> None:
    """What may be done with your data, by whom, and how much of it in a year.

    A policy is a signed file. Once it is in force, your ledger reserves nothing that it forbids.
    """


@policy.command()
@file_argument
@click.option("--name", required=True, help="What the policy is called.")
@click.option(
    "--approver",
    "approvers",
    multiple=True,
    help="Public key of one who may sign policies and approve studies [default: yours]. Several.",
)
@click.option("--needed", default=1, show_default=True, help="How many approvers must sign.")
@click.option("--dataset", "datasets", multiple=True, help="A data set with rules of its own.")
@key_option
@ledger_option
@json_option
def new(
    file: Path,
    name: str,
    approvers: tuple[str, ...],
    needed: int,
    datasets: tuple[str, ...],
    key_name: str,
    path: Path | None,
    as_json: bool,
) -> None:
    """Write FILE, a policy that permits nothing yet: add rules in an editor, then sign it.

    It gets the number after that of the policy in force.
    """
    from tacit.privacy.policy import Policy

    if file.exists():
        raise UsageError(f"{file} is there already: name another file, or edit it and sign it.")
    before = _in_force(path)
    document = {
        "format": "tacit policy 1",
        "name": name,
        "number": 1 if before is None else before.number + 1,
        "approvers": list(approvers or (key_named(key_name).public_key,)),
        "needed": needed,
        "datasets": dict.fromkeys(datasets or ("*",), NOTHING),
    }
    made = Policy.from_dict(document, str(file))
    _write(file, made.to_toml().rstrip() + "\n" + RULES)
    if as_json:
        return print_document({"file": str(file), **_about(made)})
    return people().print(
        f"Wrote {file}. Nothing is permitted yet: edit it, then run: tacit policy sign {file}",
        markup=False,
    )


@policy.command()
@click.argument("file", type=click.Path(path_type=Path), required=False)
@ledger_option
@json_option
def show(file: Path | None, path: Path | None, as_json: bool) -> None:
    """Say in words what FILE permits, or what the policy in force does."""
    from tacit.cli.policy_view import policy_lines
    from tacit.privacy.policy import Policy

    found = _in_force(path) if file is None else Policy.load(file)
    if found is None:
        if as_json:
            return print_document({"policy": None})
        return people().print("No policy is in force: your budgets alone decide.")
    if as_json:
        return print_document({"policy": _about(found), "text": found.to_toml()})
    for line in policy_lines(found):
        people().print(line, markup=False)
    return None


@policy.command()
@file_argument
@key_option
@json_option
def sign(file: Path, key_name: str, as_json: bool) -> None:
    """Add your signature to FILE. It is written out in order; comments are not kept."""
    from tacit.privacy.policy import Policy

    found = Policy.load(file)
    signed = Policy(**{**vars(found), "signatures": _holding(found)}).signed(key_named(key_name))
    _write(file, signed.to_toml())
    if as_json:
        return print_document({"file": str(file), **_about(signed)})
    count = len(signed.signers() & set(signed.approvers))
    return people().print(
        f"{file}: signed by {count} of its {len(signed.approvers)} approvers; {signed.needed} must."
        f"\nDigest {signed.digest}",
        markup=False,
    )


@policy.command()
@file_argument
@ledger_option
@json_option
def use(file: Path, path: Path | None, as_json: bool) -> None:
    """Put FILE in force. If a policy is in force already, its approvers must have signed too.

    The ledger keeps the whole text: FILE itself is not needed any more.
    """
    from tacit.privacy.ledger import Ledger
    from tacit.privacy.policy import Policy

    found, ledger = Policy.load(file), Ledger(path or ledger_path())
    ledger.decisions.use(found)
    if as_json:
        return print_document({"ledger": str(ledger.path), "head": ledger.head, **_about(found)})
    return people().print(
        f"Policy {found.name}, number {found.number}, is in force.\nDigest {found.digest}",
        markup=False,
    )


@policy.command()
@study_argument
@dataset_option
@ledger_option
@json_option
def check(study_file: Path, dataset: str, path: Path | None, as_json: bool) -> None:
    """Say which rules STUDY would break with a data set. Nothing is reserved."""
    asked, promise = _asked(study_file)
    ledger = ledger_there(path)
    found = None if ledger is None else ledger.decisions.policy
    none: tuple[bool, list[Broken]] = (False, [])
    revoked, broken = none if ledger is None else _objections(ledger, dataset, asked, promise)
    if as_json:
        rules = [_rule(one) for one in broken]
        print_document(
            {"permitted": not broken and not revoked, "revoked": revoked, "broken": rules}
        )
    elif not broken and not revoked:
        words = "no policy is in force" if found is None else f"policy {found.name} permits it"
        people().print(f"{study_file} with {dataset}: {words}.", markup=False)
    if revoked:
        fail(Refused(f"the use of data set {dataset!r} is revoked (tacit policy revoke)."))
    if broken:
        fail(Refused("\n".join(map(str, broken))))


@policy.command()
@study_argument
@dataset_option
@key_option
@click.option("--out", type=click.Path(path_type=Path), help="Write it for the holder instead.")
@click.option(
    "--from", "given", type=click.Path(path_type=Path), help="Record what an approver has written."
)
@ledger_option
@json_option
def approve(
    study_file: Path,
    dataset: str,
    key_name: str,
    out: Path | None,
    given: Path | None,
    path: Path | None,
    as_json: bool,
) -> None:
    """Sign as an approver that STUDY may use a data set, and record it in the ledger."""
    from tacit.privacy.ledger import Ledger
    from tacit.privacy.policy import Approval

    study = _asked(study_file)[0].study or ""
    if given is None:
        approval = Approval.signed(study, dataset, key_named(key_name))
    else:
        approval = Approval.load(given)
        if (approval.study, approval.dataset) != (study, dataset):
            raise InputError(f"{given}: approves another study, or another data set.")
    if out is not None:
        _write(out, approval.to_toml())
        words = f"Wrote {out}. The holder runs: tacit policy approve STUDY --from {out}"
    else:
        Ledger(path or ledger_path()).decisions.approve(approval)
        words = f"{approval.approver} approves {study_file} with {dataset}."
    if as_json:
        return print_document({"study": study, "dataset": dataset, "approver": approval.approver})
    return people().print(words, markup=False)


@policy.command()
@file_argument
@click.option("--servers", type=click.IntRange(min=1), help="So many of a study's servers.")
@click.option("--server", "named", multiple=True, help="This one: its public key. Several.")
@key_option
@json_option
def trust(
    file: Path, servers: int | None, named: tuple[str, ...], key_name: str, as_json: bool
) -> None:
    """Write FILE: how many servers you trust not to collude, or which, for a study's author.

    The author sees what it costs in noise: tacit study trust STUDY FILE
    """
    from tacit.privacy.policy import TrustStatement, reading

    if (servers is None) == (not named):
        raise UsageError("say how many you trust, with --servers, or which, with --server.")
    stated = reading.keys(list(named), "--server") if servers is None else servers
    made = TrustStatement.signed(stated, key_named(key_name))
    _write(file, made.to_toml())
    if as_json:
        trusts = list(stated) if isinstance(stated, tuple) else stated
        return print_document({"file": str(file), "servers": trusts, "holder": made.holder})
    return people().print(f"Wrote {file}: send it to the author of the study.", markup=False)


policy.add_command(revoke)
policy.add_command(leave_out)
policy.add_command(left_out)

NOTHING: dict[str, Any] = {"programs": []}
RULES = """
# Rules, each for the table [datasets."…"] above it; what is left out is not restricted.
# programs = ["logistic"]             which may run
# columns = ["age", "disease"]        which may be read
# headerless = true                   also of files without a header, by the author's names for them
# person = "patient"                  the column that says whose a record is
# unit = "person"                     the smallest that is protected: record, person, holder
# epsilon_per_study = 1.0             most of one study; likewise delta_per_study
# epsilon_per_year = 4.0              most of the last 365 days; likewise delta_per_year
# authors = ["KEY"]                   whose studies
# servers = ["KEY", "KEY"]            through whom
# trust = 2                           so many servers do not collude, or a list of their keys
# approval = "each study"             approvers sign each one
"""


def _in_force(path: Path | None) -> Policy | None:
    ledger = ledger_there(path)
    return None if ledger is None else ledger.decisions.policy


def _objections(
    ledger: Ledger, dataset: str, asked: Asked, promise: Promise
) -> tuple[bool, list[Broken]]:
    """Whether the use of the data set is revoked, and the policy's rules that would be broken."""
    decisions = ledger.decisions
    found = decisions.policy
    broken: list[Broken] = []
    if found is not None:
        totals = decisions.totals(dataset, promise, asked.study)
        signers = decisions.approvers_of(asked.study or "", dataset)
        broken = found.broken(dataset, promise, asked, totals, signers)
    revoked = dataset in decisions.revoked
    if not broken and not revoked:
        decisions.check_person(promise, dataset, asked)
    return revoked, broken


def _asked(file: Path) -> tuple[Asked, Promise]:
    """What a study's or a crowd's file asks."""
    from tacit.channels.crowd.proposal import Proposal
    from tacit.channels.studies.asked import asked_by
    from tacit.channels.studies.study import Study
    from tacit.cli.study import is_proposal

    if is_proposal(file):
        proposal = Proposal.load(file)
        proposal.check_signature()
        return proposal.asked, proposal.local_promise
    study = Study.load(file)
    study.check_signature()
    return asked_by(study), study.promise


def _holding(found: Policy) -> dict[str, str]:
    """Signatures that still hold: others were made before something was changed."""
    signers = found.signers()
    return {key: text for key, text in found.signatures.items() if key in signers}


def _about(found: Policy) -> dict[str, Any]:
    return {
        "name": found.name,
        "number": found.number,
        "digest": found.digest,
        "approvers": list(found.approvers),
        "needed": found.needed,
        "signed_by": sorted(found.signers()),
    }


def _rule(one: Broken) -> dict[str, str]:
    return {
        "rule": one.rule,
        "asked": one.asked,
        "allowed": one.allowed,
        "remedy": one.remedy,
    }


def _write(file: Path, text: str) -> None:
    from tacit.whole_file import write_whole

    try:
        write_whole(file, text)
    except OSError as error:
        raise InputError(f"{file}: cannot be written ({error.strerror}).") from None
