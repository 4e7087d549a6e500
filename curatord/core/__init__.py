"""Values in, values out: no I/O, no clock (see tests/test_architecture.py)."""
