"""`python -m tacit.promises > docs/promises.md`"""

from __future__ import annotations

from tacit.promises.page import page

__all__: list[str] = []

if __name__ == "__main__":
    print(page(), end="")
