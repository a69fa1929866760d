"""Which tools of a server an application takes, and how far it believes what they say."""

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from fnmatch import fnmatchcase
from typing import Any, Literal

from ..errors import ConfigurationError
from ..tool import ToolDisplay, ToolPolicy, ToolRuntime, ToolSideEffects

_LABEL_PREFIXES = ("composio_", "mcp_")
_LONGEST_LABEL = 200
_GLOB = frozenset("*?[")


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolChoice:
    """What the options of a client say of the server's tools."""

    prefix: str
    include: Collection[str] | None
    exclude: Collection[str]
    policies: Mapping[str, ToolPolicy]
    trust_annotations: bool
    timeout: float | None | Literal["inherit"]
    max_result_chars: int | None

    def __post_init__(self) -> None:
        for option in ("include", "exclude"):
            given: object = getattr(self, option)
            if isinstance(given, str):
                raise ConfigurationError(
                    f"`{option}` is a collection of names: write {option}=[{given!r}]"
                )

    def takes(self, name: str) -> bool:
        """Whether the application wants the tool of this name."""
        if self.include is not None and not _matches(name, self.include):
            return False
        return not _matches(name, self.exclude)

    def check(self, listed: Iterable[str], server: str) -> None:
        """Refuse names that the server does not know.

        Raises:
            ConfigurationError: Naming them.
        """
        known = list(listed)
        named = {*(self.include or ()), *self.policies}
        missing = sorted(n for n in named if not _GLOB.intersection(n) and n not in known)
        if missing:
            raise ConfigurationError(
                f"the tool server `{server}` has no tool {_listed(missing)}; "
                f"there are {_listed(sorted(known)[:50]) or 'none'}"
            )

    def policy_of(self, name: str, hints: Mapping[str, Any], *, title: str | None) -> ToolPolicy:
        """Return the policy of a tool: the application's own, or what can be said of it.

        A server's word that a tool is harmless counts only where the application trusts it; its
        word that one destroys things always does.
        """
        if name in self.policies:
            return self.policies[name]
        trusted = self.trust_annotations and bool(hints)
        read_only = trusted and bool(hints.get("read_only_hint", False))
        # What a hint that is not given means is the protocol's to say (2025-11-25, ToolAnnotations).
        destructive = bool(hints.get("destructive_hint", trusted)) and not read_only
        network = not trusted or bool(hints.get("open_world_hint", True))
        return ToolPolicy(
            classified=trusted,
            side_effects=ToolSideEffects(
                read_only=read_only,
                destructive=destructive,
                network=network,
                external_service=not read_only,
            ),
            runtime=ToolRuntime(
                timeout=self.timeout,
                idempotent=read_only or (trusted and bool(hints.get("idempotent_hint", False))),
                max_result_chars=self.max_result_chars,
                streaming=True,
            ),
            display=ToolDisplay(label=_on_one_line(title or label_of(name))),
        )


def label_of(name: str) -> str:
    """Return how people read a tool's name: ``mcp_list-files`` is ``List Files``."""
    for prefix in _LABEL_PREFIXES:
        name = name.removeprefix(prefix)
    return " ".join(word.capitalize() for word in name.replace("_", " ").replace("-", " ").split())


def _on_one_line(label: str) -> str:
    """Return a label short, and without what could make it look like more than one when it is shown."""
    return "".join(c if c.isprintable() else " " for c in label[:_LONGEST_LABEL])


def _matches(name: str, patterns: Iterable[str]) -> bool:
    return any(fnmatchcase(name, pattern) for pattern in patterns)


def _listed(names: Iterable[str]) -> str:
    return ", ".join(f"`{name}`" for name in names)
