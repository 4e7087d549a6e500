"""
Which file systems do not tell this kernel what others change in them.

A folder of a Mac or of Windows that an engine mounts into a container, a network share: what is written on the other
side raises no event here (bugs B119). The kind of the mount says so before the first change is missed.
"""

from __future__ import annotations

__all__ = ["NO_EVENTS", "is_silent"]

NO_EVENTS = frozenset(
    {
        "9p", "virtiofs", "drvfs", "fakeowner", "osxfs", "grpcfuse", "vboxsf", "prl_fs", "vmhgfs", "vmhgfs-fuse",
        "nfs", "nfs4", "cifs", "smb3", "smbfs", "sshfs", "afs", "ceph", "glusterfs", "lustre", "rclone", "s3fs",
    }
)  # fmt: skip


def is_silent(file_system: str) -> bool:
    """Return whether *file_system*, a type as the kernel's table of mounts has it, is one of them."""
    return file_system.removeprefix("fuse.") in NO_EVENTS
