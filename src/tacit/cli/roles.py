"""What the commands of a study's roles share: reading the study, the folder, words for people."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

from tacit.cli.output import json_option, people
from tacit.errors import TacitError

if TYPE_CHECKING:
    from rich.status import Status

    from tacit.channels.roles.budget import LedgerBudget
    from tacit.channels.roles.events import Events
    from tacit.channels.studies.agreement import Named
    from tacit.channels.studies.study import Study
    from tacit.programs.program import Learner

__all__ = ["Role", "agreed_study", "learner_of", "remembered", "resumable", "role_options"]

F = TypeVar("F", bound=Callable[..., Any])

# Events that people want to see as they happen, and how they are said.
SAID = {
    "listening": "listening on port {port}",
    "holder joined": "{holder} joined",
    "holder left": "{holder} left",
    "round opened": "round {round} is open",
    "round closed": "round {round}: summed {holders} holders, noise added",
    "round done": "round {round} of {of}: {holders} holders",
    "window published": "window {window} is over: a model of all records so far is out",
    "window received": "window {window} is over: the model of all records so far is here",
    "round missed": "round {round} was missed",
    "too few holders": "round {round}: only {holders} holders, waiting",
    "server put back": "round {round}: a server was put back, and is told what it missed",
    "round recalled": "round {round}: taken back into the books, as it was sealed",
    "round given up": "round {round} is given up: it may have been answered before the restore",
    "shares lost": "round {round}: a server has lost shares; holders send theirs again",
    "shares sent": "round {round}: shares are with all servers",
    "share refused": "round {round}: share refused: {reason}",
    "server failed": "{server} did not {asked}: {reason}",
    "sum refused": "round {round}: sum refused: {reason}",
    "refused": "refused a message ({kind}): {reason}",
    "waiting": "{phase}: waiting for {awaited}{limit}",
    "away": "{name} cannot be reached: trying again for {seconds} s at most. {reason}",
    "back": "{name} is there again",
    "trained": "trained on its own records",
    "attempt begun": "attempt {round} begins, with {holders} parties",
    "step taken": "step {step}: {holder} has taken it",
    "step refused": "step {step}: what {holder} sent does not follow the protocol, and is refused",
    "attempt given up": "attempt {round} is given up without any release: {missing} vanished",
    "attempt begun anew": "attempt {round} is given up without any release: the records of "
    "{holder} have changed",
    "records changed": "your records, or the version of tacit, have changed since attempt {round} "
    "began: nothing more is said in it, since the same masks and noise around another model would "
    "show the difference of the two; the curator is asked for another attempt",
    "file renamed": "{file} goes on where {before} was ({records} records of it were used)",
    "file goes on": "{file} begins with the {records} records of {other}: what comes after is new",
    "file left out": "warning: {file} is left out: its first {records} records were used already, "
    "as {other}. It is taken for a copy; new records belong into a file that begins otherwise, or "
    "at the end of one of the two",
    "file alike": "warning: {file} begins with the same {records} records as {other}; records of "
    "this table are too alike to tell whether it is a copy. They are taken for new ones",
    "file adopted": "{file}: an earlier version has noted that {records} of its records were used, "
    "and not which; they are taken to be the first ones",
    "reachable": "others reach you at {address}",
    "group begun": "group {group}: {holders} peers aggregate",
    "group let go": "group {group} is let go: {reason}",
    "at rest": "at rest: {reason}",
    "model refused": "refused a published model: {reason}",
    "publication set aside": "warning: a stored publication ({id}) is set aside: {reason}",
    "two results": "warning: two different results of group {group} are signed by {signer}: the "
    "first stays, and one of them is not what the group released",
    "new records": "new records ({part}), with a budget of their own",
    "relay ready": "{relay} is ready",
    "roster closed": "the roster is closed: {people} people, {relays} relays",
    "lots drawn": "lots are drawn for {people} people",
    "wave opened": "stage {stage}, wave {wave}: people send",
    "stage over": "stage {stage} is over: {reports} of {of} answers",
    "study over": "the study is over",
    "registered": "registered",
    "lots checked": "the lots are as they should be: {questions} question(s) for you",
    "answered": "answered {question}, randomised",
    "answers arrived": "{arrived} of {of} answers have arrived",
    "batch passed on": "stage {stage}, wave {wave}, hop {hop}: passed on",
    "batch held back": "held back: {reason}",
    "objects": "warning: {reason} Nothing more is passed on; tell the others",
    "not in the lots": "this study goes on without this relay: {reason}",
    "relay left out": "stage {stage}, wave {wave}: goes without {relay}, which was not heard",
    "tokens issued": "stage {stage}: people have their answers proved",
    "packets lost": "{packets} packets could not be passed on",
    "model published": "the model is out",
    "model received": "the model is here, and its certificate holds",
    "study stopped": "stopped: {reason}",
    "holders without the model": "{holders} holders have not fetched the model",
}

# Events of each round: of these a terminal shows the newest on one line, and a log has each tenth.
OF_EACH_ROUND = {"round opened", "round closed", "round done", "shares sent"}
TOLD_OF = 10


def role_options(command: F) -> F:
    """Options that every role has."""
    for option in (
        json_option,
        click.option("--key", "key_name", default="holder", show_default=True, help="Identity."),
        click.option("--agree", help="Digest of the study that you agree to, if it was changed."),
        click.option(
            "--folder", type=click.Path(path_type=Path), help="Where this role keeps its state."
        ),
        click.option(
            "--insecure", is_flag=True, help="Allow http:// on this machine, for trials only."
        ),
    ):
        command = option(command)
    return command


def agreed_study(path: Path, agree: str | None) -> Study:
    """The study in the file: well formed, signed by its author, and the one agreed to.

    It is remembered (`remembered`) once something is about to be said in it, and not before:
    whoever could not even begin has agreed to nothing.
    """
    from tacit.channels.studies.agreement import check_agreed
    from tacit.channels.studies.study import Study
    from tacit.home import tacit_home

    study = Study.load(path)
    study.check_signature()
    learner_of(study)
    check_agreed(study, tacit_home(), agree)
    return study


def remembered(study: Study) -> None:
    """From here on this is the study of its name, for whoever works from this home."""
    from tacit.channels.studies.agreement import remember
    from tacit.home import tacit_home

    remember(study, tacit_home())


def learner_of(study: Study) -> Learner:
    """What is learned, as installed here: summed over records, or averaged over parties."""
    return study.program() if study.consortium is None else study.averaged()


class Role:
    """The folder and the events of one role in one study."""

    def __init__(self, study: Named, role: str, folder: Path | None, as_json: bool) -> None:
        from tacit.channels.roles.events import Events
        from tacit.home import tacit_home

        self.folder = folder or tacit_home() / "studies" / f"{study.name}-{role}"
        self._words = people(as_json=True)
        self._status: Status | None = None
        self.tell: Events = Events(self.folder, role, study.name, self._show)
        click.get_current_context().call_on_close(self._close)

    @classmethod
    def of_study(cls, study: Named, role: str, folder: Path | None, as_json: bool) -> Role:
        """In a folder of this study alone: one that was corrected under its name has another."""
        from tacit.channels.roles.folders import study_folder
        from tacit.home import tacit_home

        return cls(study, role, folder or study_folder(tacit_home(), study, role), as_json)

    def _show(self, line: dict[str, Any]) -> None:
        said = SAID.get(line["event"])
        if said is None:
            return
        text = f"{line['role']}: {said.format_map(line)}"
        if line["event"] not in OF_EACH_ROUND:
            self._words.print(text, markup=False)
        elif self._words.is_terminal:
            self._show_newest(text)
        elif line["round"] == 1 or line["round"] % TOLD_OF == 0:
            self._words.print(text, markup=False)

    def _show_newest(self, text: str) -> None:
        """On a line of its own below all others, in place of the one before."""
        from rich.markup import escape

        if self._status is None:
            self._status = self._words.status("")
            self._status.start()
        self._status.update(escape(text))

    def _close(self) -> None:
        if self._status is not None:
            self._status.stop()
        self.tell.close()


@contextmanager
def resumable(role: Role, budget: LedgerBudget) -> Iterator[None]:
    """Take part under `budget`: after whatever goes wrong, but for a final refusal, we may come
    back and go on."""
    from tacit.channels.roles.storage import storage_error, storage_problem

    try:
        yield
    except BaseException as error:
        budget.stop(error)
        problem = storage_problem(error)
        if problem is None:
            if isinstance(error, TacitError):  # for whoever asks later (`tacit study status`)
                role.tell("part ended", reason=str(error))
            raise
        raise storage_error(problem, role.folder) from error
