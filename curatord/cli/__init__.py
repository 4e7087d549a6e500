"""One module a group of commands: read arguments, call one function, print, exit code."""
