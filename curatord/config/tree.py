"""A configuration's text as a tree: quickly where it is plain, by PyYAML where it is not."""

from __future__ import annotations

from curatord.config.nodes import Mapping_
from curatord.config.plain_tree import parse_plain

__all__ = ["parse_tree"]


def parse_tree(text: str, file: str) -> Mapping_ | None:
    """
    Return the one document of *text*; None where there is nothing but comments and blanks.

    Raises:
        TreeError: It is no configuration; see `yaml_tree`.
    """
    plain = parse_plain(text, file)
    if plain is not None:
        return plain if plain.items else None
    from curatord.config.yaml_tree import parse_tree as parse_yaml

    return parse_yaml(text, file)
