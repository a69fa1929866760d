"""Old tool results cleared from what is sent."""

from collections import Counter
from collections.abc import Collection, Iterator, Sequence
from typing import Any, cast

from ...context import RunContext
from ...memo import MessageCache
from ...message import Message, ToolMessage
from ...model import JsonSchemaFormat, ModelRequest
from ...options import check_at_least, names_of
from ...summarization import CLEARED, cleared_result
from ...token_estimation import TokenCounterLike, TokenEstimator
from .._base import Middleware
from ._shortening import put_shorter, tokens_saved


class ContextEditingMiddleware(Middleware[Any]):
    """Puts a placeholder in the place of old tool results; the transcript keeps them.

    The latest results stay, those that the model has not seen yet in any case, and so do those that
    are ``trusted_verbatim`` and those of ``exclude_tools``. What was cleared once stays cleared for the rest of the run, a resumed one too,
    so that prompts go on from each other between two clearings.

    Hooks: ``before_model``. It changes results in the request, and with ``clear_arguments`` the calls
    that they belong to. Events: ``context.compressed``, unless ``events`` is off.

    Args:
        keep_recent: How many of the latest results stay.
        trigger_tokens: Clear only where the prompt is more than that; at each call where it is ``None``.
            0 is none, too.
        clear_at_least: Clear only where that makes so many tokens fewer: each clearing makes a
            provider's prompt cache of what follows it worthless.
        exclude_tools: Tools whose results stay.
        clear_arguments: Empty the arguments of the calls, too.
        placeholder: What stands in a result's place.
        counter: Counts tokens: see :class:`~tinyagents.harness.token_estimation.TokenEstimator`.
        events: Whether to tell of it.

    Raises:
        ConfigurationError: A number is negative, or names are given as one text.
    """

    def __init__(
        self,
        *,
        keep_recent: int = 3,
        trigger_tokens: int | None = None,
        clear_at_least: int = 0,
        exclude_tools: Collection[str] = (),
        clear_arguments: bool = False,
        placeholder: str = CLEARED,
        counter: TokenCounterLike | None = None,
        events: bool = True,
    ) -> None:
        check_at_least(
            0,
            keep_recent=keep_recent,
            trigger_tokens=trigger_tokens,
            clear_at_least=clear_at_least,
        )
        self._keep_recent = keep_recent
        self._trigger = trigger_tokens or None
        self._at_least = clear_at_least
        self._excluded = names_of("exclude_tools", exclude_tools)
        self._arguments = clear_arguments
        self._placeholder = placeholder
        self._estimator = TokenEstimator(counter)
        self._events = events
        self._emptied: MessageCache[tuple[str, ...], Message] = MessageCache(self._without)

    async def before_model(self, ctx: RunContext[Any], request: ModelRequest) -> None:
        """Clear what is old, where it is time to."""
        if self._trigger is not None or self._at_least:
            await self._estimator.prepare(request.messages)
        results = dict(_results(request.messages))
        able = self._able(request.messages, results)
        noted = cast("list[str]", ctx.notes.get(self.name) or [])
        cleared = [key for key in noted if key in able]
        messages = self._edited(request.messages, results, cleared)
        fresh = able.difference(cleared)
        if fresh and self._is_time(request, messages):
            wanted = [key for key in results if key in able]
            shorter = self._edited(request.messages, results, wanted)
            saved = tokens_saved(messages, shorter, self._estimator)
            if saved > 0 and saved >= self._at_least:
                messages, cleared = shorter, wanted
        if cleared or noted:
            # Another of this kind, with other options, may have cleared more.
            others = [key for key in noted if key in results and key not in able]
            ctx.notes[self.name] = [*others, *cleared]
        if self._events:
            await put_shorter(ctx, request, messages, self._estimator, self.name)
        else:
            request.messages = list(messages)

    def _able(self, messages: Sequence[Message], results: dict[str, int]) -> set[str]:
        """Return the keys of the results that may be cleared."""
        answer = _asking(messages, len(messages) - 1)
        keys = list(results)
        older = keys[: max(0, len(keys) - self._keep_recent)]
        return {
            key
            for key in older
            # No model has seen what comes after the latest answer, however much that is.
            if not 0 <= answer < results[key] and self._may_clear(messages[results[key]])
        }

    def _is_time(self, request: ModelRequest, messages: Sequence[Message]) -> bool:
        if self._trigger is None:
            return True
        wanted = request.response_format
        form = wanted if isinstance(wanted, JsonSchemaFormat) else None
        # What the provider has counted last was cleared as these are.
        return self._estimator.prompt(messages, request.tools, form).total > self._trigger

    def _may_clear(self, message: Message) -> bool:
        return (
            isinstance(message, ToolMessage)
            and not message.trusted_verbatim
            and message.name not in self._excluded
            and message.text != self._placeholder
        )

    def _edited(
        self, messages: list[Message], results: dict[str, int], cleared: Collection[str]
    ) -> list[Message]:
        """Return the messages with these results cleared; the very same list where there is none."""
        if not cleared:
            return messages
        edited = list(messages)
        calls: dict[int, list[str]] = {}
        for key in cleared:
            place = results[key]
            message = messages[place]
            assert isinstance(message, ToolMessage)
            edited[place] = self._emptied.of(message, ())
            if self._arguments:
                asking = _asking(messages, place)
                if asking >= 0:
                    calls.setdefault(asking, []).append(message.tool_call_id)
        for place, ids in calls.items():
            edited[place] = self._emptied.of(messages[place], tuple(ids))
        return edited

    def _without(self, message: Message, ids: tuple[str, ...]) -> Message:
        if isinstance(message, ToolMessage):
            return cleared_result(message, self._placeholder)
        content = [
            block.model_copy(update={"arguments": {}, "invalid": None})
            if block.type == "tool_call" and block.id in ids
            else block
            for block in message.content
        ]
        return message.model_copy(update={"content": content})


def _results(messages: Sequence[Message]) -> Iterator[tuple[str, int]]:
    """Yield a key and the place of each result; a call's id may come again in a later turn."""
    seen: Counter[str] = Counter()
    for place, message in enumerate(messages):
        if isinstance(message, ToolMessage):
            seen[message.tool_call_id] += 1
            yield f"{message.tool_call_id}#{seen[message.tool_call_id]}", place


def _asking(messages: Sequence[Message], place: int) -> int:
    """Return the place of the latest answer up to a place; -1 where there is none."""
    while place >= 0 and messages[place].role != "assistant":
        place -= 1
    return place
