"""
Runs a program under the system-call rules of a systemd unit, as far as one process can put them on itself.

    python confine.py UNIT PROGRAM ARGUMENT…

Done are `NoNewPrivileges`, `SystemCallFilter` with `SystemCallErrorNumber` (by a filter of our own in the kernel's
language, from the groups that this machine's systemd knows), `MemoryDenyWriteExecute` (PR_SET_MDWE, Linux 6.3) and
`UMask`. Namespaces and mounts are not. Exits 77 where the kernel or this machine has not what it takes.
"""

from __future__ import annotations

import ctypes
import os
import re
import struct
import subprocess
import sys
from pathlib import Path

HEADER = Path("/usr/include/x86_64-linux-gnu/asm/unistd_64.h")
PR_SET_NO_NEW_PRIVS, PR_SET_SECCOMP, PR_SET_MDWE = 38, 22, 65
SECCOMP_MODE_FILTER, REFUSE_EXEC_GAIN = 2, 1
ALLOW, ERRNO = 0x7FFF0000, 0x00050000
EPERM = 1
LOAD, EQUAL, RETURN = 0x20, 0x15, 0x06  # BPF_LD|BPF_W|BPF_ABS, BPF_JMP|BPF_JEQ|BPF_K, BPF_RET|BPF_K


def group(name: str) -> set[str]:
    """Return the calls of a group, with those of the groups in it."""
    text = subprocess.run(
        ["systemd-analyze", "syscall-filter", name], capture_output=True, text=True, check=True
    ).stdout
    found: set[str] = set()
    for word in (line.strip() for line in text.splitlines()[1:]):
        if word.startswith("@"):
            found |= group(word)
        elif word and not word.startswith("#"):
            found.add(word)
    return found


def allowed(unit: str) -> set[str]:
    """Return the calls that the unit's filter lets through: the first line allows, those with `~` take away."""
    calls: set[str] = set()
    for said in re.findall(r"(?m)^SystemCallFilter=(.*)$", unit):
        named = {
            call for word in said.lstrip("~").split() for call in (group(word) if word.startswith("@") else {word})
        }
        calls = calls - named if said.startswith("~") else calls | named
    return calls


def program(numbers: list[int]) -> bytes:
    """Return a filter that lets *numbers* through and refuses all else."""
    lines = [(LOAD, 0, 0, 0)]
    for number in numbers:
        lines += [(EQUAL, 0, 1, number), (RETURN, 0, 0, ALLOW)]
    lines.append((RETURN, 0, 0, ERRNO | EPERM))
    return b"".join(struct.pack("HBBI", *line) for line in lines)


def main() -> int:
    """Put the rules on and become the program; return only where that cannot be done."""
    unit = Path(sys.argv[1]).read_text()
    if not HEADER.exists():
        return 77
    numbers = {name: int(number) for name, number in re.findall(r"#define __NR_(\w+) (\d+)", HEADER.read_text())}
    code = program(sorted(numbers[name] for name in allowed(unit) if name in numbers))
    os.umask(0o077 if "UMask=0077" in unit else 0o022)
    control = ctypes.CDLL(None, use_errno=True).prctl
    if "MemoryDenyWriteExecute=yes" in unit and control(PR_SET_MDWE, REFUSE_EXEC_GAIN, 0, 0, 0) != 0:
        return 77
    buffer = ctypes.create_string_buffer(code)
    described = ctypes.create_string_buffer(struct.pack("HxxxxxxP", len(code) // 8, ctypes.addressof(buffer)))
    if (
        control(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0
        or control(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, described, 0, 0) != 0
    ):
        return 77
    os.execv(sys.argv[2], sys.argv[2:])
    raise AssertionError("that does not come back")


if __name__ == "__main__":
    sys.exit(main())
