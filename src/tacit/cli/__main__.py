"""`python -m tacit.cli`: the same as `tacit`."""

from tacit.cli.main import main

__all__: list[str] = []

if __name__ == "__main__":
    main()
