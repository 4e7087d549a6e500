"""`python -m curatord`, and the command `curatord`."""

from __future__ import annotations

import sys


def main() -> int:
    """Return the exit code of the command line; modules are imported late, since `--version` should be quick."""
    if sys.argv[1:] == ["--version"]:
        from curatord import __version__

        sys.stdout.write(f"curatord {__version__}\n")
        return 0
    if sys.platform == "win32":
        sys.stderr.write(
            "curatord: runs on Linux and macOS; its promises rest on file locks and renames that Windows has not\n"
            "  install it within the Windows Subsystem for Linux, and agents that live in Windows are read there\n"
            "  from /mnt/c/Users/NAME (as `path` of sources and libraries)\n"
        )
        return 2
    if sys.getfilesystemencoding() != "utf-8":
        # `LC_ALL=C` without Python's UTF-8 mode: names of files could be neither opened nor shown (bugs B077). The mode
        # can only be chosen at the interpreter's start, so it is started once more as it was, with that option.
        import os

        os.execv(sys.executable, [sys.executable, "-X", "utf8", *sys.orig_argv[1:]])  # noqa: S606 - our own, as it was
    import gc

    from curatord.cli.main import main as run

    code = run()
    # As it ends, the interpreter would look for cycles in all that is left, which goes with the process anyway.
    gc.freeze()
    return code


if __name__ == "__main__":
    sys.exit(main())
