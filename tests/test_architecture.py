"""The rooms of the house and the arrows between them (ARCHITECTURE.md)."""

from __future__ import annotations

import ast
import importlib
import sys
from functools import cache
from pathlib import Path

import pytest

from tacit import children

ROOT = Path(__file__).parent.parent
SOURCE = ROOT / "src" / "tacit"

# room → the rooms it may import. What is not listed here does not exist yet.
ARROWS: dict[str, set[str]] = {
    "errors": set(),
    "home": set(),
    "program_names": set(),
    "notebook": set(),
    "whole_file": {"errors"},
    "toml_text": {"errors"},
    "children_launch": set(),
    "children": {"children_launch"},
    "crypto": {"errors", "home"},
    "privacy": {"errors", "home", "program_names", "notebook", "whole_file", "toml_text", "crypto"},
    "data": {"errors", "notebook", "whole_file", "toml_text", "children", "crypto", "privacy"},
    "personal": {"errors", "home", "crypto", "privacy", "data"},
    "programs": {"errors", "home", "program_names", "whole_file", "crypto", "privacy", "data"},
    "engines": {"errors"},
    "wire": {"errors", "home", "crypto"},
    "channels": {
        "errors",
        "home",
        "whole_file",
        "crypto",
        "privacy",
        "data",
        "programs",
        "engines",
        "wire",
    },
    "promises": {"errors", "crypto", "privacy", "data", "programs", "channels"},
    "audits": {"errors", "crypto", "privacy", "data", "programs", "engines", "channels"},
    "estimators": {
        "errors",
        "notebook",
        "crypto",
        "privacy",
        "data",
        "programs",
        "engines",
        "channels",
        "audits",
    },
    "cli": {
        "errors",
        "home",
        "program_names",
        "whole_file",
        "children",
        "crypto",
        "privacy",
        "data",
        "programs",
        "channels",
        "audits",
        "engines",
        "estimators",
        "personal",
        "wire",
    },
}


@cache
def modules() -> dict[str, Path]:
    found = {}
    for path in sorted(SOURCE.rglob("*.py")):
        parts = path.relative_to(SOURCE.parent).with_suffix("").parts
        found[".".join(p for p in parts if p != "__init__")] = path
    return found


def imported(path: Path) -> set[str]:
    names: set[str] = set()
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            names.update(alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path}: imports are absolute in this house"
            names.update(f"{node.module}.{alias.name}" for alias in node.names)
    return {n for n in names if n.split(".")[0] == "tacit"}


@pytest.mark.parametrize("name", [n for n in modules() if n != "tacit"])
def test_arrows_point_down(name: str) -> None:
    room = name.split(".")[1]
    for target in imported(modules()[name]):
        other = target.split(".")[1]
        if other in {"__version__", "Promise"}:
            continue
        assert other == room or other in ARROWS[room], f"{name} may not import {target}"


# What channels share, and the one channel that another may be built on.
SHARED = {"studies", "roles", "central"}
# A group of peers is a consortium.
BUILT_ON = {"peers": {"consortium"}}


@pytest.mark.parametrize("name", [n for n in modules() if n.startswith("tacit.channels.")])
def test_channels_do_not_import_one_another(name: str) -> None:
    own = name.split(".")[2]
    for target in imported(modules()[name]):
        parts = target.split(".")
        if parts[1] == "channels" and len(parts) > 2 and parts[2] != own:
            allowed = SHARED if own not in SHARED else {"studies", "roles", "selection"}
            allowed = allowed | BUILT_ON.get(own, set())
            assert parts[2] in allowed, f"{name} may not import {target}"


def test_noise_is_drawn_in_one_place() -> None:
    """Only privacy/noise.py asks a Randomness for a stream of random words."""
    for name, path in modules().items():
        files = (
            "blind_permute",
            "blind_signatures",
            "boxes",
            "comparison",
            "dgk",
            "paillier",
            "prg",
            "raw_rsa",
            "ring_signatures",
            "sealing",
            "sharing",
            "signing",
        )
        drawers = [f"tacit.crypto.{file}" for file in files]
        if name in {"tacit.privacy.noise", *drawers}:
            continue
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.Attribute):
                assert node.attr != "stream", f"{name} draws randomness itself"
                assert not (node.attr == "random" and isinstance(node.value, ast.Name)), (
                    f"{name} uses an insecure generator"
                )


REPLACING = {"replace", "rename", "renames", "move", "copyfile", "copy", "copy2", "link"}


def test_files_are_replaced_in_one_place() -> None:
    """A rename replaces devices and links too: only whole_file.py knows what must not be."""
    for name, path in modules().items():
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
                called, of = node.func.attr, node.func.value
                by_module = isinstance(of, ast.Name) and of.id in {"os", "shutil"}
                # `text.replace(old, new)` has two arguments, `path.replace(target)` has one.
                of_values = isinstance(of, ast.Attribute) and of.attr == "structs"
                alone = len(node.args) == 1 and not node.keywords
                by_path = alone and not of_values and called in {"replace", "rename"}
                if called in REPLACING and (by_module or by_path):
                    known = {
                        "tacit.whole_file": "replace",
                        "tacit.crypto.local_secret": "link",
                        "tacit.crypto.signing": "link",
                        "tacit.privacy.ledger.chain": "link",
                    }
                    assert known.get(name) == called, f"{name}:{node.lineno} {called}s by itself"


def test_audit_is_a_second_opinion() -> None:
    for path in (SOURCE / "privacy" / "audit.py", *(SOURCE / "audits").glob("*.py")):
        assert not any("accounting" in n for n in imported(path)), path


@pytest.mark.parametrize("name", modules())
def test_exports_are_what_is_public(name: str) -> None:
    module = importlib.import_module(name)
    exported = getattr(module, "__all__", None)
    if exported is None:
        assert modules()[name].name == "__init__.py", f"{name} has no __all__"
        return
    assert list(exported) == sorted(exported, key=_ruff_order), f"{name}.__all__ is not sorted"
    for symbol in exported:
        assert hasattr(module, symbol), f"{name} exports {symbol}, which does not exist"


def _ruff_order(symbol: str) -> tuple[int, str]:
    """SCREAMING first, then Classes, then functions: the order ruff keeps."""
    if symbol.isupper():
        return (0, symbol)
    return (1 if symbol[0].isupper() else 2, symbol)


IMPORT_EACH = """
import importlib, sys
from importlib.machinery import SourceFileLoader

compiled, compile_it = {}, SourceFileLoader.get_code

def get_code(loader, name):
    if name not in compiled:
        compiled[name] = compile_it(loader, name)
    return compiled[name]

SourceFileLoader.get_code = get_code
end = sys.argv.index("-")
for name in sys.argv[1:end]:
    for loaded in [m for m in sys.modules if m.split(".")[0] == "tacit"]:
        del sys.modules[loaded]
    importlib.import_module(name)
for name in sys.argv[end + 1:]:
    importlib.import_module(name)
"""


def needed(name: str) -> set[str]:
    """Our modules that are run when this one is imported: those that it names outside functions,
    and the packages around all of them."""
    names, todo = {name}, list(ast.parse(modules()[name].read_text()).body)
    while todo:
        node: ast.AST = todo.pop()
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda):
            continue
        if isinstance(node, ast.Import):
            names.update(alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            names.update(f"{node.module}.{alias.name}" for alias in node.names)
        todo.extend(ast.iter_child_nodes(node))
    parts = [n.split(".") for n in names]
    around = {".".join(p[:end]) for p in parts for end in range(1, len(p) + 1)}
    return (around & set(modules())) - {name}


def in_cycles() -> list[str]:
    """The modules that, followed through what they need, need themselves."""
    graph = {name: needed(name) for name in modules()}
    found = []
    for name in graph:
        seen: set[str] = set()
        todo = list(graph[name])
        while todo:
            one = todo.pop()
            if one not in seen:
                seen.add(one)
                todo += graph[one]
        if name in seen:
            found.append(name)
    return found


def test_each_module_imports_alone() -> None:
    """Which module is imported first matters only in a cycle, where one may see another half
    made. So each module of a cycle is the first one once, in one fresh interpreter in which all of
    ours is run anew each time, and then all others are imported."""
    cycles = in_cycles()
    assert {"tacit", "tacit.privacy"} <= set(cycles) < set(modules())
    rest = [name for name in modules() if name not in cycles]
    words = [*cycles, "-", *rest]
    children.run([sys.executable, "-c", IMPORT_EACH, *words], check=True, timeout=500)
