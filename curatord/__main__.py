"""`python -m curatord`."""

from __future__ import annotations

import sys


def main() -> int:
    """Return the exit code of the command line; modules are imported late, since `--version` should be quick."""
    from curatord import __version__

    if sys.argv[1:] == ["--version"]:
        sys.stdout.write(f"curatord {__version__}\n")
        return 0
    sys.stderr.write("curatord: no command is built yet\n")
    return 2


if __name__ == "__main__":
    sys.exit(main())
