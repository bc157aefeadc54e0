"""Roles that are started with SIGINT ignored, as background jobs of a shell are.

Ctrl-C at the terminal is for whoever is in the foreground, and stays ignored. SIGTERM ends them.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))

from federation_processes import HOLDERS, SERVERS, Process, Roles, federation

from tacit import children

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="/proc")

IGNORING = (
    "import os, signal, sys; signal.signal(signal.SIGINT, signal.SIG_IGN); "
    "os.execv(sys.argv[1], sys.argv[1:])"
)


def started(roles: Roles, name: str) -> Process:
    """As `Roles.start` does, but in the background."""
    roles.lives[name] = 1
    command = [sys.executable, "-m", "tacit.cli", *roles._words(name)]
    log = roles.root / name / "life-1.log"
    with log.open("wb") as errors:
        popen = children.start(
            [sys.executable, "-c", IGNORING, *command],
            env={**os.environ, "TACIT_HOME": str(roles.root / name)},
            cwd=roles.root / name,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=errors,
        )
    roles.running[name] = Process(popen, log)
    return roles.running[name]


def is_ignored(number: signal.Signals, process: int) -> bool:
    status = Path(f"/proc/{process}/status").read_text()
    (mask,) = [line.split()[1] for line in status.splitlines() if line.startswith("SigIgn")]
    return bool(int(mask, 16) >> (number - 1) & 1)


@pytest.mark.parametrize("name", [SERVERS[0], "aggregator", HOLDERS[0]])
def test_ctrl_c_stays_ignored_and_sigterm_ends_it(tmp_path: Path, name: str) -> None:
    with federation(tmp_path) as roles:
        process = started(roles, name)
        if name in HOLDERS:  # it has joined a study, and waits for the others
            for other in (*SERVERS, "aggregator"):
                roles.start(other)
            roles.until("aggregator", "holder joined")
        else:
            roles.until(name, "listening")
        assert is_ignored(signal.SIGINT, process.popen.pid)
        assert not is_ignored(signal.SIGTERM, process.popen.pid)
        process.send(signal.SIGINT)
        process.send(signal.SIGTERM)
        assert process.popen.wait() in (0, -signal.SIGTERM)
        del roles.running[name]
