"""Tools that come with the package: each is off until an application makes it and hands it out."""

from ._shell import shell_tool

__all__ = ("shell_tool",)
