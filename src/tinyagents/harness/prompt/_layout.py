"""What two prompts have in common, as a provider's cache sees it."""

from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from functools import cache
from itertools import takewhile
from typing import Any, Literal, TypeAlias

from pydantic import JsonValue, TypeAdapter

from ..message import Message
from ..model import ModelRequest, PromptSegment, ToolSchema
from ..text import JsonObject
from ._fingerprint import message_digest, tools_digest

LayoutVerdict: TypeAlias = Literal["layout_preserved", "layout_changed", "prefix_invalidated"]
"""``layout_preserved``: one prompt continues the other. ``layout_changed``: it does too, with other
cacheable segments. ``prefix_invalidated``: something in the common part is another now."""

LayoutReason: TypeAlias = Literal["segments", "tools", "messages"]
"""What is another: the cacheable segments, the tools, or a message."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LayoutChange:
    """The outcome of a comparison, free of the prompts' content."""

    verdict: LayoutVerdict
    before: tuple[str, ...]
    """The ids of the cacheable segments of the first prompt."""
    after: tuple[str, ...]
    """Those of the second one."""
    reason: LayoutReason | None = None
    """What is another; ``None`` when the layout is preserved."""
    segment: str | None = None
    """The id of the first segment that is another, where it is one's."""
    message: int | None = None
    """The place of the first message that is another, from 0."""

    @property
    def is_preserved(self) -> bool:
        """Whether what a cache holds of the first prompt serves the second one."""
        return self.verdict != "prefix_invalidated"

    def event(self) -> tuple[str, dict[str, Any]]:
        """Return the kind of the event that tells of it, and its payload."""
        payload: dict[str, Any] = {"before": self.before, "after": self.after}
        if self.verdict != "layout_preserved":
            payload["reason"] = self.reason
        if self.verdict == "prefix_invalidated":
            payload |= {"segment": self.segment, "message": self.message}
        return f"cache.{self.verdict}", payload


@dataclass(frozen=True, slots=True, kw_only=True)
class PromptCacheLayout:
    """How a prompt is laid out, as digests: what a provider's cache could have kept of it.

    The messages from the first volatile segment on are no part of it; without one all are, those
    behind the last segment too.
    """

    segments: tuple[PromptSegment, ...]
    tools: str
    """The digest of the tools."""
    messages: tuple[str, ...]
    """The digest of each message."""
    _tools_seen: tuple[ToolSchema, ...] = field(default=(), repr=False, compare=False)
    _messages_seen: tuple[tuple[Message, int], ...] = field(default=(), repr=False, compare=False)
    """Each with its number of blocks: a message is frozen, but its list can be appended to."""

    @classmethod
    def of(
        cls, request: ModelRequest, *, previous: "PromptCacheLayout | None" = None
    ) -> "PromptCacheLayout":
        """Return the layout of a request.

        Args:
            request: The request.
            previous: A layout whose digests are taken over for messages that are the same objects.
        """
        segments = _up_to_volatile(request.segments)
        messages = request.messages
        if len(segments) < len(request.segments):
            messages = messages[: sum(segment.messages for segment in segments)]
        tools = tuple(request.tools)
        known = 0 if previous is None else _as_before(messages, previous._messages_seen)
        digests = [] if previous is None else list(previous.messages[:known])
        digests.extend(map(message_digest, messages[known:]))
        if previous is not None and tools == previous._tools_seen:
            digest_of_tools = previous.tools
        else:
            digest_of_tools = tools_digest(tools)
        return cls(
            segments=segments,
            tools=digest_of_tools,
            messages=tuple(digests),
            _tools_seen=tools,
            _messages_seen=tuple([(each, len(each.content)) for each in messages]),
        )

    def dump(self) -> JsonObject:
        """Return the layout as JSON, to be kept with a run: digests, and the ids of segments."""
        segments: list[JsonValue] = [asdict(segment) for segment in self.segments]
        return {"segments": segments, "tools": self.tools, "messages": [*self.messages]}

    @classmethod
    def load(cls, data: JsonValue) -> "PromptCacheLayout":
        """Return the layout that :meth:`dump` made this of.

        Raises:
            pydantic.ValidationError: The data does not describe a layout; the error says where.
        """
        return _adapter().validate_python(data)

    @property
    def ids(self) -> tuple[str, ...]:
        """The ids of the cacheable segments, in order."""
        return tuple(segment.id for segment in self.segments if segment.cacheable)

    def compare(self, after: "PromptCacheLayout") -> LayoutChange:
        """Return what a later prompt makes of this one."""
        if self.tools != after.tools:
            return self._invalidated(after, "tools", segment=self._tools_segment())
        differs = _first_difference(self.messages, after.messages)
        if _arranged(self) != _arranged(after):
            return self._rearranged(after, differs)
        resized = self._resized(after)
        if resized is not None and (differs is None or resized[0] <= differs):
            place, segment = resized
            return self._invalidated(after, "messages", segment=segment, message=place)
        if differs is not None:
            segment_there = self.segment_at(differs)
            return self._invalidated(after, "messages", segment=segment_there, message=differs)
        return LayoutChange(verdict="layout_preserved", before=self.ids, after=after.ids)

    def segment_at(self, message: int) -> str | None:
        """Return the id of the segment that a message belongs to, by its place."""
        end = 0
        for segment in self.segments:
            end += segment.messages
            if message < end:
                return segment.id
        return None

    def _rearranged(self, after: "PromptCacheLayout", differs: int | None) -> LayoutChange:
        """Return the outcome where the cacheable segments are others than before."""
        if differs is None:
            return LayoutChange(
                verdict="layout_changed", before=self.ids, after=after.ids, reason="segments"
            )
        place = _first_difference(_arranged(self), _arranged(after))
        if place is None:
            place = min(len(self.ids), len(after.ids))
        segment = (self.ids if place < len(self.ids) else after.ids)[place]
        return self._invalidated(after, "segments", segment=segment, message=differs)

    def _resized(self, after: "PromptCacheLayout") -> tuple[int, str] | None:
        """Return where a cacheable segment has got longer or shorter, and its id.

        One of the role ``history`` may.
        """
        sizes = {each.id: each.messages for each in after.segments if each.cacheable}
        start = 0
        for segment in self.segments:
            size = sizes.get(segment.id, segment.messages)
            if segment.cacheable and segment.role != "history" and size != segment.messages:
                return start + min(size, segment.messages), segment.id
            start += segment.messages
        return None

    def _tools_segment(self) -> str | None:
        return next((each.id for each in self.segments if each.role == "tools"), None)

    def _invalidated(
        self,
        after: "PromptCacheLayout",
        reason: LayoutReason,
        *,
        segment: str | None,
        message: int | None = None,
    ) -> LayoutChange:
        return LayoutChange(
            verdict="prefix_invalidated",
            before=self.ids,
            after=after.ids,
            reason=reason,
            segment=segment,
            message=message,
        )


@cache
def _adapter() -> "TypeAdapter[PromptCacheLayout]":
    # Built at first use: most processes read no layout.
    return TypeAdapter(PromptCacheLayout)


def _up_to_volatile(segments: Sequence[PromptSegment]) -> tuple[PromptSegment, ...]:
    roles = [segment.role for segment in segments]
    return tuple(segments[: roles.index("volatile")] if "volatile" in roles else segments)


def _arranged(layout: PromptCacheLayout) -> tuple[tuple[str, str], ...]:
    return tuple((each.id, each.role) for each in layout.segments if each.cacheable)


def _first_difference(before: Sequence[object], after: Sequence[object]) -> int | None:
    """Return the first place at which two sequences differ; ``None`` where one begins the other."""
    pairs = enumerate(zip(before, after, strict=False))
    return next((place for place, (one, other) in pairs if one != other), None)


def _as_before(messages: Sequence[Message], seen: Sequence[tuple[Message, int]]) -> int:
    """Return how many messages two prompts begin with that are the very same."""
    pairs = zip(messages, seen, strict=False)
    same = takewhile(
        lambda pair: pair[0] is pair[1][0] and len(pair[0].content) == pair[1][1], pairs
    )
    return sum(1 for _ in same)
