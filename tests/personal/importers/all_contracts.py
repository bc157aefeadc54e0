"""All contract classes of the tests of importers, with their good exports."""

from __future__ import annotations

import sys
from functools import cache
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from types import ModuleType

from tacit.personal.importers.contract import ImporterContract

__all__ = ["contracts"]


@cache
def contracts() -> dict[str, type[ImporterContract]]:
    """Those of tacit's own importers, by file and class: `test_gpx.TestGpx`."""
    found: dict[str, type[ImporterContract]] = {}
    for path in sorted(Path(__file__).parent.glob("test_*.py")):
        if "(ImporterContract)" in path.read_text(encoding="utf-8"):
            for name, one in vars(_loaded(path)).items():
                if _is_contract(one):
                    found[f"{path.stem}.{name}"] = one
    return found


def _is_contract(one: object) -> bool:
    return (
        isinstance(one, type)
        and issubclass(one, ImporterContract)
        and hasattr(one, "importer")
        and type(one.importer).__module__.startswith("tacit.")
    )


def _loaded(path: Path) -> ModuleType:
    spec = spec_from_file_location(f"contracts_of_{path.stem}", path)
    assert spec is not None
    assert spec.loader is not None
    module = module_from_spec(spec)
    sys.modules[spec.name] = module  # where dataclasses look for their own module
    spec.loader.exec_module(module)
    return module
