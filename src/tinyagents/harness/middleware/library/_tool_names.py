"""Tools by name: a list of those that may be called, and lists that a child can only narrow."""

from collections.abc import Collection
from dataclasses import dataclass

from ...errors import ConfigurationError


@dataclass(frozen=True, slots=True)
class NameRule:
    """Which tools are allowed by name: those of ``allow``, or all without one, and none of ``deny``."""

    allow: frozenset[str] | None = None
    deny: frozenset[str] = frozenset()

    @classmethod
    def of(cls, allow: Collection[str] | None, deny: Collection[str]) -> "NameRule":
        """Make a rule of lists of names.

        Raises:
            ConfigurationError: One of them is one text.
        """
        for names in (allow, deny):
            if isinstance(names, str):
                raise ConfigurationError(
                    f"tools are listed as a collection of names: pass [{names!r}]"
                )
        return cls(None if allow is None else frozenset(allow), frozenset(deny))

    def admits(self, name: str) -> bool:
        """Whether the tool is allowed."""
        return name not in self.deny and (self.allow is None or name in self.allow)

    def narrowed(self, inner: "NameRule") -> "NameRule":
        """Return a rule that allows what both rules allow."""
        if self.allow is None or inner.allow is None:
            allow = inner.allow if self.allow is None else self.allow
        else:
            allow = self.allow & inner.allow
        return NameRule(allow, self.deny | inner.deny)
