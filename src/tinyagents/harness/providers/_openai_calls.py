"""Tool calls in a Chat Completions answer."""

from collections.abc import Iterator, Mapping
from typing import Any, Final

from ..ids import IdGenerator
from ..message import ToolCallBlock
from ..model import ToolCallAssembler, ToolCallDelta, parse_arguments
from ..text import JsonObject, clean_json, dump_json
from ..tool_calling import repair_arguments
from ._json import as_object, as_text
from ._openai_wire import WireTools, safe_id
from ._pieces import joined, says_something, under_name

_CALL_FIELDS: Final = frozenset({"index", "id", "type", "function"})


class _Unnamed:
    """A call that came without an id, while it is put together."""

    __slots__ = ("arguments", "name")

    def __init__(self, name: str) -> None:
        self.name = name
        self.arguments: list[str] = []

    def continues(self, delta: ToolCallDelta) -> bool:
        """Whether a piece that names its call belongs to this one, and is not another call."""
        if delta.name != self.name:
            return False
        return not delta.arguments or parse_arguments("".join(self.arguments))[1] is not None


class CallParts:
    """Puts the calls of an answer together."""

    __slots__ = ("_calls", "_extra", "_ids", "_tools", "_unnamed", "extensions")

    def __init__(self, tools: WireTools, ids: IdGenerator) -> None:
        self._tools = tools
        self._ids = ids
        self._calls = ToolCallAssembler()
        self._extra: dict[int, JsonObject] = {}
        self._unnamed: dict[str, _Unnamed] = {}
        self.extensions: list[JsonObject] = []
        """Calls of a kind that is not understood."""

    def add(self, call: Mapping[str, Any], *, whole: bool) -> ToolCallDelta | None:
        """Take a piece of a call and return its delta; ``None`` for a kind that is not understood.

        Args:
            call: The piece.
            whole: The piece is a whole call, which is not continued.
        """
        function = as_object(call.get("function"))
        extra = {n: v for n, v in call.items() if n not in _CALL_FIELDS and says_something(v)}
        if function is None:
            if extra:
                self.extensions.append({"tool_call": clean_json(call)})
            return None
        name = as_text(function.get("name")) or ""
        given = as_text(call.get("id")) or ""
        index = call.get("index")
        delta = ToolCallDelta(
            call_id=safe_id(given) if given else "",
            name=self._tools.user_name(name) if name else "",
            arguments=_arguments(function.get("arguments")),
            index=index if isinstance(index, int | str) else None,
        )
        self._name_call(delta, whole=whole)
        position = self._calls.add(delta)
        for field, value in function.items():
            if field not in ("name", "arguments") and says_something(value):
                extra["function"] = {**(as_object(extra.get("function")) or {}), field: value}
        if delta.call_id and given and delta.call_id != given:
            extra["id"] = given
        if extra:
            known = self._extra.setdefault(position, {})
            for field, value in extra.items():
                known[field] = joined(known.get(field), value, same=field == "id")
        return delta

    def _name_call(self, delta: ToolCallDelta, *, whole: bool) -> None:
        """Give a call without an id one, the same in every piece and in the response."""
        slot = "" if delta.index is None else str(delta.index)
        if delta.call_id:
            self._unnamed.pop(slot, None)
            return
        known = self._unnamed.get(slot)
        if delta.name and (whole or known is None or not known.continues(delta)):
            known = self._unnamed[slot] = _Unnamed(delta.name)
            delta.call_id = self._ids.new("tacall")
        if known is not None:
            known.arguments.append(delta.arguments)

    def blocks(self, provider: str) -> Iterator[ToolCallBlock]:
        """Return the calls as blocks that are understood by their provider."""
        for position, block in self._calls.blocks().items():
            changes = repairs(block)
            if not self._calls.id_of(position):
                changes["id"] = self._ids.new("tacall")
            own = self._extra.get(position)
            if own:
                changes["provider_data"] = under_name(provider, own)
            yield block.model_copy(update=changes) if changes else block


def repairs(block: ToolCallBlock) -> dict[str, Any]:
    """Return what changes in a call whose arguments can be repaired."""
    if block.invalid is None:
        return {}
    arguments, invalid = repair_arguments(block.invalid.raw)
    return {"arguments": arguments, "invalid": None} if invalid is None else {}


def _arguments(value: Any) -> str:
    """Return arguments as the text that most providers send; some send the object itself."""
    if value is None or isinstance(value, str):
        return value or ""
    return dump_json(value)
