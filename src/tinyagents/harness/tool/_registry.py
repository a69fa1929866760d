"""The tools of one harness."""

from collections.abc import Iterable, Iterator, Mapping
from types import MappingProxyType

from ..errors import DuplicateNameError, ToolNotFoundError
from ..model import ToolSchema
from ..options import check_list
from ._decorator import ToolLike, as_tool
from ._policy import ToolPolicy
from ._tool import Tool


class ToolRegistry:
    """Tools by name, in the order of the names. Immutable.

    Args:
        tools: Tools, and functions to make tools of.

    Raises:
        ConfigurationError: They are no list.
        DuplicateNameError: Two of them have one name.
        ToolSchemaError: A function cannot be described to a model.
    """

    __slots__ = ("_tools", "names", "schemas")

    def __init__(self, tools: Iterable[ToolLike] = ()) -> None:
        check_list("tools", tools)
        found: dict[str, Tool] = {}
        for source in tools:
            tool = as_tool(source)
            if tool.name in found:
                raise DuplicateNameError(f"two tools are called `{tool.name}`", name=tool.name)
            found[tool.name] = tool
        self._tools = {name: found[name] for name in sorted(found)}
        self.names: tuple[str, ...] = tuple(self._tools)
        self.schemas: tuple[ToolSchema, ...] = tuple(tool.schema for tool in self)
        """What models see, made once."""

    @property
    def policies(self) -> Mapping[str, ToolPolicy]:
        """What each tool does and needs."""
        return MappingProxyType({tool.name: tool.policy for tool in self})

    def find(self, name: str) -> Tool | None:
        """Return the tool of that name, if there is one."""
        return self._tools.get(name)

    def get(self, name: str) -> Tool:
        """Return the tool of that name.

        Raises:
            ToolNotFoundError: There is none; the error names those there are.
        """
        tool = self._tools.get(name)
        if tool is None:
            known = ", ".join(f"`{known}`" for known in self.names) or "none"
            raise ToolNotFoundError(
                f"there is no tool `{name}`; there are: {known}", name=name, available=self.names
            )
        return tool

    def with_tools(self, *tools: ToolLike) -> "ToolRegistry":
        """Return a registry with these tools added; those of a name that is taken replace it.

        Raises:
            DuplicateNameError: Two of the new ones have one name.
        """
        added = ToolRegistry(tools)
        return ToolRegistry({**self._tools, **added._tools}.values())

    def without_tools(self, *names: str) -> "ToolRegistry":
        """Return a registry without the tools of these names."""
        return ToolRegistry(tool for tool in self if tool.name not in names)

    def __contains__(self, name: object) -> bool:
        return name in self._tools

    def __iter__(self) -> Iterator[Tool]:
        return iter(self._tools.values())

    def __len__(self) -> int:
        return len(self._tools)

    def __repr__(self) -> str:
        return f"ToolRegistry({', '.join(self.names)})"
