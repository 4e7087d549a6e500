"""Read, decide in core, write, record; handed their adapters, never importing them."""
