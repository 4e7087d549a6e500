"""Prompt files: those of the package, and a folder of the user's whose files take their place one by one."""

from __future__ import annotations

from importlib.resources import files
from pathlib import Path

from curatord.adapters.small_files import read_small
from curatord.errors import ConfigError, OwnershipError
from curatord.ports.prompts import Prompt

__all__ = ["PromptFiles"]

MAX_BYTES = 64 * 1024


class PromptFiles:
    """
    Reads `<name>.md` (a name with a dot is the whole file name), each time anew, so that an edit counts from the next
    run on.

    *folder* is the configuration's `prompts`, or None.
    """

    def __init__(self, folder: str | None = None) -> None:
        self._folder = None if folder is None else Path(folder)

    def read(self, name: str) -> Prompt:
        """See `Prompts.read`."""
        file = name if "." in name else f"{name}.md"
        if self._folder is not None:
            path = self._folder / file
            own = _own(path)
            if own is not None:
                return Prompt(name=name, text=own, own=True)
            if not self._folder.is_dir():
                raise ConfigError(
                    f"prompts: {self._folder} is no folder",
                    key="prompts",
                    hint="create it, or take `prompts` out of the configuration",
                )
        text = files("curatord.prompts").joinpath(file).read_text(encoding="utf-8")
        return Prompt(name=name, text=text)


def _own(path: Path) -> str | None:
    """Return the text of the user's own file, or None where there is none."""
    try:
        data = read_small(str(path))
        if data is None:
            return None
        text = data.decode("utf-8-sig")
    except (OwnershipError, UnicodeDecodeError) as error:
        hint = "let this user read it as a file of text, or take `prompts` out of the configuration"
        raise ConfigError(
            f"{path} cannot be used as a prompt: {error}", key="prompts", file=str(path), hint=hint
        ) from error
    if len(data) > MAX_BYTES or not text.strip():
        what = f"longer than {MAX_BYTES} bytes" if text.strip() else "empty"
        raise ConfigError(f"{path} is {what}", key="prompts", file=str(path), hint="shorten it, or remove it")
    return text
