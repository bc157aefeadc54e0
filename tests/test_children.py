"""Whoever starts processes takes them along at the end, however that comes."""

from __future__ import annotations

import ast
import os
import signal
import subprocess
import sys
from pathlib import Path
from random import Random

import pytest

from tacit import children

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="processes as on Unix")

ROOT = Path(__file__).parent.parent
# Each child writes a line when it is up, and never ends by itself. All hold the pipe `alive`, which
# ends when the last of them has.
PARENT = """
import os, signal, subprocess, sys, threading
from tacit import children

alive = int(sys.argv[1])
up = "import os, signal, sys; os.write(int(sys.argv[1]), bytes([10])); "
wait = up + "[signal.pause() for _ in iter(int, 1)]"
deaf = "import signal; [signal.signal(n, signal.SIG_IGN) for n in (1, 2, 15)]; " + wait
stopped = up + "os.kill(os.getpid(), signal.SIGSTOP)"
forking = "import os; os.fork(); " + wait
nested = (
    "import signal, sys; from tacit import children; alive = sys.argv[1]; "
    "children.start([sys.executable, '-c', sys.argv[2], alive], pass_fds=[int(alive)]); " + wait
)

def start(code, *words, **options):
    return children.start(
        [sys.executable, "-c", code, str(alive), *words], pass_fds=[alive], **options
    )

start(wait)
start(deaf)
start(stopped)
start(forking, start_new_session=True)
start(nested, wait)
thread = threading.Thread(target=start, args=(wait,))  # its end is not ours
thread.start()
thread.join()
children.start(["bash", "-c", f"exec {sys.executable} -c '{wait}' {alive}"], pass_fds=[alive])
if os.fork() == 0:  # a fork of the parent outlives it, and must not keep its children alive
    os.close(alive)
    os.read(0, 1)
    os._exit(0)
os.close(alive)
{ending}
"""
CHILDREN = 9  # with those that were forked
ENDINGS = {
    "kill -9": "os.kill(os.getpid(), signal.SIGKILL)",
    "an error": "raise SystemExit(1)",
    "waiting": "signal.pause()",
}


def lines(pipe: int, count: int) -> None:
    """Until so many children are up."""
    seen = b""
    while seen.count(b"\n") < count:
        more = os.read(pipe, 100)
        assert more, "the parent failed"
        seen += more


@pytest.mark.parametrize("ending", ENDINGS)
def test_children_end_with_their_parent(ending: str) -> None:
    reading, alive = os.pipe()
    code = PARENT.replace("{ending}", "os.read(0, 1)\n" + ENDINGS[ending])
    held, hold = os.pipe()  # the fork that is left ends with the test
    parent = subprocess.Popen(
        [sys.executable, "-c", code, str(alive)], pass_fds=[alive], stdin=held
    )
    os.close(alive)
    os.close(held)
    lines(reading, CHILDREN)
    os.write(hold, b"go")
    if ending == "waiting":
        parent.kill()
    parent.wait()
    assert os.read(reading, 1) == b""  # the last one that held it has ended
    os.close(hold)
    os.close(reading)


MANY = """
import os, sys
from tacit import children

alive = int(sys.argv[1])
up = f"import os, signal; os.write({alive}, bytes([10])); [signal.pause() for _ in iter(int, 1)]"
for _ in range(int(sys.argv[2])):
    children.start([sys.executable, "-c", up], pass_fds=[alive])
    os.write(1, bytes([10]))
os.close(alive)
os.read(0, 1)
"""


def killed_while_starting(random: Random) -> None:
    """The parent is killed after so many starts, whatever its children have come to by then."""
    reading, alive = os.pipe()
    count = random.randrange(1, 7)
    parent = subprocess.Popen(
        [sys.executable, "-c", MANY, str(alive), str(count)],
        pass_fds=[alive],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    )
    os.close(alive)
    assert parent.stdout is not None
    parent.stdout.read(random.randrange(1, count + 1))
    parent.kill()
    parent.communicate()
    while os.read(reading, 100):
        pass
    os.close(reading)


@pytest.mark.parametrize("seed", range(3))
def test_children_end_whenever_their_parent_is_killed(seed: int) -> None:
    killed_while_starting(Random(seed))


@pytest.mark.long
@pytest.mark.parametrize("seed", range(3, 103))
def test_children_end_whenever_their_parent_is_killed_many_times(seed: int) -> None:
    killed_while_starting(Random(seed))


def test_a_child_is_the_command_itself(tmp_path: Path) -> None:
    """Its number, its signals, its exit code, its output and its surroundings."""
    code = "import os, sys; print(os.getpid(), os.environ['A'], os.getcwd()); sys.exit(7)"
    child = children.start(
        [sys.executable, "-c", code],
        stdout=subprocess.PIPE, text=True, cwd=tmp_path, env={**os.environ, "A": "b"},
    )  # fmt: skip
    said, _ = child.communicate()
    assert said.split() == [str(child.pid), "b", str(tmp_path.resolve())]
    assert child.returncode == 7
    child = children.start([sys.executable, "-c", "import signal; signal.pause()"])
    child.kill()
    assert child.wait() == -signal.SIGKILL


def test_a_command_sees_none_of_it() -> None:
    """No descriptor of ours is left open in it."""
    code = "import os; print(sorted(int(n) for n in os.listdir('/proc/self/fd')))"
    if sys.platform != "linux":
        pytest.skip("/proc")
    done = children.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "[0, 1, 2, 3]\n"  # 3 is the folder it is listing


def test_a_guard_ends_with_its_child() -> None:
    """It holds nothing but the pipe, so the pipe's other end tells."""
    code = (
        "import os, sys\nfrom tacit import children\n"
        "children.run([sys.executable, '-c', 'pass'])\n"
        "ours, theirs = children._PIPE._ends\n"
        "os.close(ours)\n"  # the guard's copy is the last
        "import signal\nsignal.signal(signal.SIGPIPE, signal.SIG_IGN)\n"
        "try:\n    while True: os.write(theirs, b'x')\n"
        "except BrokenPipeError: print('nobody is left')\n"
    )
    done = children.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.stdout == "nobody is left\n", done.stderr


def test_what_cannot_be_run() -> None:
    done = children.run(["/no/such/command"], capture_output=True, text=True)
    assert (done.returncode, "cannot be run" in done.stderr) == (127, True)


STARTING = {"Popen", "run", "call", "check_call", "check_output"}
SOURCES = [
    path
    for folder in ("src", "tests", "benchmarks")
    for path in sorted((ROOT / folder).rglob("*.py"))
    if path not in (ROOT / "src/tacit/children.py", Path(__file__))
]


def test_all_processes_are_started_in_one_way() -> None:
    for path in SOURCES:
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
                of = node.func.value
                by = isinstance(of, ast.Name) and of.id == "subprocess"
                assert not (by and node.func.attr in STARTING), (
                    f"{path.relative_to(ROOT)}:{node.lineno} starts a process that may outlive it: "
                    "take tacit.children"
                )
