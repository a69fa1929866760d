"""Files inside a folder whose paths somebody else chose: read, written, listed and walked.

A path is walked from an open handle of the root, one part at a time and never through a link that was
not looked at, so that what changes while it is walked cannot lead out of the root. Links that stay
inside are followed, but nothing is written through a link that a path ends with.

What no path can tell: a hard link inside the root to a file outside is that file, and so is what was
mounted there. Who may make those has the rights to the file anyway (and Linux forbids hard links to
files of others by default, see ``protected_hardlinks`` in proc(5)). Such a file can be read; writing
puts another file in the place of its name and leaves it as it is.

Where the system cannot open relative to a folder (Windows), the real path is checked before and after
opening. That finds every link that is there, but not all that somebody swaps in and out again within
that moment.

All functions block: call them in a thread.
"""

from ._list import Entry, EntryKind, list_inside, walk_inside
from ._open import open_inside
from ._write import change_inside, remove_inside, write_inside

__all__ = (
    "Entry",
    "EntryKind",
    "change_inside",
    "list_inside",
    "open_inside",
    "remove_inside",
    "walk_inside",
    "write_inside",
)
