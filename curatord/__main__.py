"""`python -m curatord`, and the command `curatord`."""

from __future__ import annotations

import sys


def main() -> int:
    """Return the exit code of the command line; modules are imported late, since `--version` should be quick."""
    if sys.argv[1:] == ["--version"]:
        from curatord import __version__

        sys.stdout.write(f"curatord {__version__}\n")
        return 0
    from curatord.cli.main import main as run

    return run()


if __name__ == "__main__":
    sys.exit(main())
