"""
Which file systems do not tell this kernel what others change in them.

A folder of a Mac or of Windows that an engine mounts into a container, a network share: what is written on the other
side raises no event here (bugs B119). That can be known from the kind of the mount, before the first change is missed.
"""

from __future__ import annotations

import re
from pathlib import Path

__all__ = ["SILENT", "kind_of_mount", "silent_mount"]

SILENT = frozenset(
    {
        "9p", "virtiofs", "drvfs", "fakeowner", "osxfs", "grpcfuse", "vboxsf", "prl_fs", "vmhgfs", "vmhgfs-fuse",
        "nfs", "nfs4", "cifs", "smb3", "smbfs", "sshfs", "afs", "ceph", "glusterfs", "lustre", "rclone", "s3fs",
    }
)  # fmt: skip


def kind_of_mount(path: str, mountinfo: str) -> str | None:
    """
    Return the kind of file system that *path* (absolute, true) lies on, or None where the table does not tell.

    *mountinfo* is the text of /proc/self/mountinfo; source: proc_pid_mountinfo(5).
    """
    best, kind = -1, None
    for line in mountinfo.splitlines():
        left, separator, right = line.partition(" - ")
        fields = left.split(" ")
        if not separator or len(fields) < 5:
            continue
        point = re.sub(r"\\([0-7]{3})", lambda found: chr(int(found[1], 8)), fields[4]).rstrip("/")
        # Of several at one point the last one covers the others.
        if len(point) >= best and (path == point or path.startswith(point + "/")):
            best, kind = len(point), right.split(" ")[0]
    return kind


def silent_mount(path: str) -> str | None:
    """Return the kind of the mount that *path* lies on where it is a silent one, else None."""
    try:
        text = Path("/proc/self/mountinfo").read_text(encoding="utf-8", errors="surrogateescape")
    except OSError:
        return None  # no Linux
    kind = kind_of_mount(path, text)
    return kind if kind is not None and kind.removeprefix("fuse.") in SILENT else None
