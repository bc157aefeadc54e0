"""The people of a guide as real processes, each in a folder and with a home of their own.

Everybody depends on everybody: whoever waits for a healthy process while another has failed would
wait in vain. So whoever waits for one looks after all, and says the words of the one that failed.
"""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import time
from dataclasses import dataclass, field
from pathlib import Path
from types import TracebackType

from tacit import children

COMMANDS = re.compile(r"^```console as (\w+)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
SCHEMA = re.compile(r"^```toml\n(.*?)^```$", re.MULTILINE | re.DOTALL)
PATIENCE = 400.0  # seconds until a test gives up: only a defect or a dead machine takes so long
LOOK = 0.02
LAST = 2000  # characters that are shown of what each of the others said


@dataclass
class Running:
    """One command at work. What it says goes to a file, which is never full as a pipe may be."""

    line: str
    popen: subprocess.Popen[bytes]
    log: Path

    @property
    def words(self) -> str:
        return self.log.read_text(encoding="utf-8", errors="replace")


@dataclass
class Somebody:
    """A folder, a home, variables and processes."""

    company: Company
    name: str
    folder: Path
    variables: dict[str, str]
    running: list[Running] = field(default_factory=list)
    _commands: int = 0

    def receive(self, file: Path, name: str | None = None) -> None:
        """A file that somebody else has written, if there is one yet and we have another.

        It comes whole: a command that was started before may be reading ours at this moment, and
        would find an empty one while it is written over.
        """
        mine = self.folder / (name or file.name)
        data = file.read_bytes() if file.exists() else None
        if data is not None and not (mine.exists() and mine.read_bytes() == data):
            arriving = mine.with_name(f"{mine.name}.arriving")
            arriving.write_bytes(data)
            arriving.replace(mine)

    def start(self, line: str) -> Running:
        """A command of the guide, as it is typed; a final & changes nothing here."""
        words = line.replace("tacit ", f"{sys.executable} -m tacit.cli ", 1)
        self._commands += 1
        log = self.folder / f"said-{self._commands}.log"
        kept = {k: v for k, v in os.environ.items() if not k.startswith("TACIT_L")}
        home = {"TACIT_HOME": str(self.folder / "home")}
        with log.open("wb") as said:
            popen = children.start(
                ["bash", "-c", f"exec {words.removesuffix(' &')}"],
                cwd=self.folder,
                env={**kept, **home, **self.variables},
                stdin=subprocess.DEVNULL,
                stdout=said,
                stderr=subprocess.STDOUT,
            )
        self.running.append(Running(line, popen, log))
        return self.running[-1]

    def run(self, line: str) -> str:
        """To the end of this command, while earlier ones go on; what it said."""
        return self.company.finished(self, self.start(line))

    def finish(self) -> str:
        """To the end of everything that is running; what the last one said."""
        said = ""
        while self.running:
            said = self.company.finished(self, self.running[0])
        return said

    def interrupt(self) -> str:
        """Ctrl-C for the one command that is running; what it said."""
        (process,) = self.running
        process.popen.send_signal(signal.SIGINT)
        return self.company.finished(self, process, code=130)


@dataclass
class Company:
    """Everybody in a guide. At the end of the `with` block nobody is left running."""

    root: Path
    patience: float = PATIENCE
    everybody: list[Somebody] = field(default_factory=list)

    def __enter__(self) -> Company:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        for process in (one for somebody in self.everybody for one in somebody.running):
            process.popen.kill()
            process.popen.wait()

    def somebody(self, name: str, **variables: str) -> Somebody:
        folder = self.root / name
        folder.mkdir()
        self.everybody.append(Somebody(self, name, folder, variables))
        return self.everybody[-1]

    def finished(self, somebody: Somebody, process: Running, code: int = 0) -> str:
        """What this process has said, once it has ended with this code."""
        ends = time.monotonic() + self.patience
        while process.popen.poll() is None:
            self.look_after(ends, f"{somebody.name} to finish: {process.line}", besides=process)
        ended, words = process.popen.returncode, process.words
        somebody.running.remove(process)
        assert ended == code, (
            f"{somebody.name} ended with {ended}: {process.line}\n{words}\n{self._said()}"
        )
        return words

    def look_after(self, ends: float, what: str, besides: Running | None = None) -> None:
        """A moment of waiting for something. Fails at once if anybody else has failed."""
        for somebody in self.everybody:
            for process in somebody.running:
                code = process.popen.poll()
                assert code in (None, 0) or process is besides, (
                    f"{somebody.name} ended with {code}, while waiting for {what}\n"
                    f"{process.line}\n{process.words}\n{self._said()}"
                )
        assert time.monotonic() < ends, f"waited in vain for {what}\n{self._said()}"
        time.sleep(LOOK)

    def _said(self) -> str:
        """The last words of everybody whom nobody has waited for yet."""
        return "\n".join(
            f"── {somebody.name}: {process.line}\n{process.words[-LAST:]}"
            for somebody in self.everybody
            for process in somebody.running
        )
