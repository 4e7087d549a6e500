"""The application as the command line and the daemon use it: one method a command, plain JSON values back."""

from curatord.application.facade import Application

__all__ = ["Application"]
