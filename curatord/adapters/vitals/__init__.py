"""Looks at the machine for `doctor`: each module gathers the facts of one kind, and changes nothing but its probe."""
