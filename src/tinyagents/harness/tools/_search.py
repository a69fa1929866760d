"""Looking through the files of a workspace, within bounds."""

import time
from collections.abc import Generator
from contextlib import closing
from dataclasses import dataclass, field
from typing import Any

from ..safe_open import Entry, walk_inside
from ..tool import ToolContext
from ._file_access import Target
from ._file_limits import FileToolLimits
from ._glob import Glob


@dataclass(slots=True)
class Search:
    """A search under way: what it may still do, and what it has left out."""

    ctx: ToolContext[Any]
    limits: FileToolLimits
    ends_at: float
    walked: int = 0
    unread: int = 0
    """Folders that cannot be read or are too deep, and files that are gone or cannot be opened."""
    notes: list[str] = field(default_factory=list[str])
    """What ended it, and what it did not see."""

    @classmethod
    def begin(cls, ctx: ToolContext[Any], limits: FileToolLimits) -> "Search":
        """Begin one; its time runs from now on."""
        return cls(ctx, limits, time.monotonic() + limits.max_seconds)

    def out_of_time(self) -> bool:
        """Whether the time is up, or the run does not want the result any more."""
        if self.ctx.cancellation.cancelled:
            return True
        if time.monotonic() <= self.ends_at:
            return False
        self.stop(f"stopped after {self.limits.max_seconds:g} s")
        return True

    def stop(self, why: str) -> None:
        """Note what ended the search, once."""
        if why not in self.notes:
            self.notes.append(why)

    def files(self, place: Target, pattern: Glob) -> Generator[Entry]:
        """Yield the files below a folder whose path from there matches, sorted; links as well."""
        found = walk_inside(
            place.root,
            place.path,
            skip=lambda entry: self._skips(entry, pattern),
            unread=self._not_read,
            within=place.within,
        )
        with closing(found):
            for entry in found:
                self.walked += 1
                if self.walked > self.limits.max_walked_entries:
                    self.stop(f"stopped after {self.limits.max_walked_entries} names")
                    break
                if self.out_of_time():
                    break
                if entry.kind in ("file", "link") and pattern.matches(entry.path):
                    yield entry

    def footer(self) -> list[str]:
        """Return the last line of the result, if there is something to say."""
        notes = list(self.notes)
        if self.unread:
            notes.append(f"{self.unread} could not be read")
        return [f"[{'; '.join(notes)}: narrow the search]"] if notes else []

    def _not_read(self, entry: Entry) -> None:
        self.unread += 1

    def _skips(self, entry: Entry, pattern: Glob) -> bool:
        if entry.kind != "folder":
            return False
        name = entry.path.rpartition("/")[2]
        return name in self.limits.skip_folders or not pattern.may_match_below(entry.path)
