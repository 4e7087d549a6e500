"""What `--json` would print, said to a person: each view takes the same plain value. They decide nothing."""
