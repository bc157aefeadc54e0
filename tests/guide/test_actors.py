"""Whoever fails in a guide is heard at once, whomever one waits for."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from socket import SO_REUSEADDR, SOL_SOCKET, socket

import pytest

sys.path.insert(0, str(Path(__file__).parent))

from actors import Company

FOREVER = "sleep infinity"


@pytest.fixture
def company(tmp_path: Path) -> Iterator[Company]:
    with Company(tmp_path) as found:
        yield found


def test_what_somebody_said_and_where(company: Company) -> None:
    anna = company.somebody("anna", WORD="hello")
    assert anna.run("echo $WORD from ${PWD##*/}") == "hello from anna\n"
    assert anna.finish() == ""
    assert not anna.running


def test_a_command_is_run_while_others_go_on(company: Company) -> None:
    anna = company.somebody("anna")
    anna.start(f"{FOREVER} &")
    assert anna.run("echo done") == "done\n"
    assert [process.line for process in anna.running] == [f"{FOREVER} &"]


def test_one_that_fails_ends_the_waiting_for_another(company: Company) -> None:
    """With the words of the one that failed, not after the patience with those of the other."""
    company.patience = 10**6
    anna, ben = company.somebody("anna"), company.somebody("ben")
    anna.start(FOREVER)
    ben.start("bash -c 'echo my port is taken >&2; exit 3' &")
    with pytest.raises(AssertionError, match="ben ended with 3") as caught:
        anna.finish()
    assert "my port is taken" in str(caught.value)


def test_files_come_whole_and_only_if_they_are_new(company: Company) -> None:
    """Whoever has ours open goes on reading the old one to its end."""
    anna, ben = company.somebody("anna"), company.somebody("ben")
    ben.receive(anna.folder / "study.toml")  # there is none yet
    assert not (ben.folder / "study.toml").exists()
    (anna.folder / "study.toml").write_text("first")
    ben.receive(anna.folder / "study.toml", "mine.toml")
    with (ben.folder / "mine.toml").open() as reading:
        held = (ben.folder / "mine.toml").stat().st_ino
        ben.receive(anna.folder / "study.toml", "mine.toml")
        assert (ben.folder / "mine.toml").stat().st_ino == held
        (anna.folder / "study.toml").write_text("second")
        ben.receive(anna.folder / "study.toml", "mine.toml")
        assert reading.read() == "first"
    assert (ben.folder / "mine.toml").read_text() == "second"


def test_a_killed_one_too(company: Company) -> None:
    anna, ben = company.somebody("anna"), company.somebody("ben")
    anna.start(FOREVER)
    ben.start(FOREVER).popen.kill()
    with pytest.raises(AssertionError, match="ben ended with -9"):
        anna.finish()


def test_its_own_failure(company: Company) -> None:
    with pytest.raises(AssertionError, match=r"anna ended with 2(.|\n)*oh no"):
        company.somebody("anna").run("bash -c 'echo oh no; exit 2'")


def test_whoever_is_waited_for_in_vain(company: Company) -> None:
    """The last words of everybody."""
    company.patience = 0.0
    anna, ben = company.somebody("anna"), company.somebody("ben")
    told = company.root / "told"
    ben.start(f"bash -c 'echo ben waits; touch {told}; exec {FOREVER}'")
    while not told.exists():
        company.look_after(float("inf"), "ben to speak")
    anna.start(FOREVER)
    with pytest.raises(AssertionError, match=r"waited in vain for anna(.|\n)*ben waits"):
        anna.finish()


def test_nobody_is_left_running(tmp_path: Path) -> None:
    with Company(tmp_path) as company:
        process = company.somebody("anna").start(FOREVER)
    assert process.popen.returncode == -9


def test_words_longer_than_a_pipe_is_wide(company: Company) -> None:
    assert len(company.somebody("anna").run("printf '%1000000d' 1")) == 1_000_000


# ── ports ──


def test_ports_are_different_and_can_be_listened_on(ports: Callable[[int], list[int]]) -> None:
    found = [*ports(20), *ports(20)]
    assert len(set(found)) == 40
    for number in found:
        with socket() as service:
            service.setsockopt(SOL_SOCKET, SO_REUSEADDR, 1)  # as asyncio's servers do
            service.bind(("127.0.0.1", number))
            service.listen()


def test_nobody_is_given_a_reserved_port(ports: Callable[[int], list[int]]) -> None:
    """Neither for a service on any free port, nor for the own end of a connection."""
    (number,) = ports(1)
    with socket() as other, pytest.raises(OSError, match="in use"):
        other.bind(("127.0.0.1", number))
    with socket() as other, pytest.raises(ConnectionRefusedError):
        other.connect(("127.0.0.1", number))  # never to itself
