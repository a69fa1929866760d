"""Tools that come with the library; none is given to a model unless an application says so."""

from typing import TYPE_CHECKING

from .. import _lazy

if TYPE_CHECKING:
    from ._shell import shell_tool

__all__ = ("shell_tool",)

if not TYPE_CHECKING:
    _HOMES = {
        "_shell": ("shell_tool",),
    }
    __getattr__, __dir__ = _lazy.names(__name__, _HOMES)
