"""Another process swaps folders for links, again and again, while actions are applied: nothing outside is reached."""

from __future__ import annotations

import contextlib
import subprocess
import sys
import time
from pathlib import Path

from curatord.core.plan import Applied, Archive, FileChange, Patch
from curatord.core.values import RelPath
from curatord.passes.undo import restore
from tests.curation_home import NOW, Home, key, tree

SECONDS = 8
SWAPPER = """
import os, sys, time
root, outside, until = sys.argv[1], sys.argv[2], time.monotonic() + float(sys.argv[3])
swaps = 0
while time.monotonic() < until:
    try:
        os.rename(f"{root}/cat", f"{root}/.aside")
        os.symlink(outside, f"{root}/cat")
        swaps += 1
        time.sleep(0.0004 * (swaps % 7))
        os.unlink(f"{root}/cat")
    except OSError:
        pass
    try:
        os.rename(f"{root}/.aside", f"{root}/cat")
    except OSError:
        pass
    time.sleep(0.0004 * (swaps % 11))
if os.path.islink(f"{root}/cat"):
    os.unlink(f"{root}/cat")
if os.path.isdir(f"{root}/.aside") and not os.path.lexists(f"{root}/cat"):
    os.rename(f"{root}/.aside", f"{root}/cat")
print(swaps)
"""


def test_folders_swapped_for_links_by_another_process(tmp_path: Path) -> None:
    """Patches, archives and restores either happen in the library or not at all."""
    home = Home(base=tmp_path / "h")
    home.skill("cat/old", files={"references/a.md": b"a"})
    applier = home.applier()
    home.know(applier, "cat/old")
    outside = tmp_path / "outside"
    (outside / "old" / "references").mkdir(parents=True)
    (outside / "old" / "SKILL.md").write_bytes((home.root / "cat/old/SKILL.md").read_bytes())
    (outside / "old" / "references" / "a.md").write_bytes(b"a")
    before = tree(outside)
    print_as = home.fingerprint("cat/old")
    tried = applied = 0
    with subprocess.Popen(
        [sys.executable, "-c", SWAPPER, str(home.root), str(outside), str(SECONDS)], stdout=subprocess.PIPE, text=True
    ) as other:
        until = time.monotonic() + SECONDS
        while time.monotonic() < until and other.poll() is None:
            tried += 1
            if tried % 2:
                files = (FileChange(path=RelPath("references/a.md"), content=f"{tried}".encode()),)
                outcome = applier.apply(
                    Patch(key=key("cat/old"), reason="r", by="model", expected=print_as, files=files), now=NOW
                )
            else:
                outcome = applier.apply(Archive(key=key("cat/old"), reason="r", expected=print_as), now=NOW)
            if isinstance(outcome, Applied):
                applied += 1
            applier.recover(now=NOW)
            if list(Path(home.site.archive).glob("old")):
                restore(applier, "old", now=NOW)
            assert before == tree(outside)
            with contextlib.suppress(OSError, AssertionError):  # it is elsewhere just now
                print_as = home.fingerprint("cat/old")
        swaps = int(other.communicate(timeout=30)[0])

    print(f"{tried} actions tried, {applied} applied, {swaps} swaps")
    assert before == tree(outside)
    assert swaps > 0
    packages = [*home.root.rglob("SKILL.md"), *Path(home.site.archive).rglob("SKILL.md")]
    assert 1 == len(packages)
