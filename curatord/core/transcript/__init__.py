"""Hosts' records: bytes to lines, lines to events, one parser module per host."""
