"""One outside thing each; named only in `curatord.wiring`."""
