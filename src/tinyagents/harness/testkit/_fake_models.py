"""Models that do the same for each call."""

from collections.abc import Iterable
from typing import Any, Self

from ..context import RunContext
from ..message import AssistantMessage, TextBlock
from ..model import (
    MessageDelta,
    ModelProfile,
    ModelRequest,
    ModelResponse,
    ModelStreamItem,
    StreamCompleted,
    StreamStarted,
)
from ._script import Delay, Reply, Step, say
from ._step_model import Cursor, Prepared, StepModel, count_tokens, estimate, prepare


class FakeChatModel(StepModel):
    """A chat model that always does the same.

    Call ids, usage and the cutting of streams are those of :class:`ScriptedModel`.

    Args:
        reply: What it does for each call: a text, or any other :data:`Step`. ``None`` is to repeat
            the last text of the user.
        profile: What the model claims to do; by default everything.
        name: The model's name in its profile and answers.
        chunk_size: How many characters a streamed piece has; ``None`` for one piece a part.
        record: Whether to keep a copy of each request.
    """

    def __init__(
        self,
        reply: Step | None = None,
        *,
        profile: ModelProfile | None = None,
        name: str = "fake",
        chunk_size: int | None = 4,
        record: bool = True,
    ) -> None:
        super().__init__(profile=profile, name=name, chunk_size=chunk_size, record=record)
        self._shares_errors = True
        self._cursor = Cursor()
        self._step: Prepared = prepare(_echo if reply is None else reply, name, 1)

    def _next(
        self, request: ModelRequest, ctx: RunContext[Any] | None
    ) -> tuple[Cursor, int, Prepared]:
        return self._cursor, self.calls, self._step


class SlowModel(FakeChatModel):
    """A chat model that takes its time before it always does the same.

    ``calls`` counts a call before the wait, so that one which was cancelled in it is seen.

    Args:
        delay: Seconds before an answer, or before its first streamed piece.
        reply: See :class:`FakeChatModel`.
        profile: See :class:`FakeChatModel`.
        name: See :class:`FakeChatModel`.
        chunk_size: See :class:`FakeChatModel`.
        record: See :class:`FakeChatModel`.
    """

    def __init__(
        self,
        delay: float,
        reply: Step = "done",
        *,
        profile: ModelProfile | None = None,
        name: str = "slow",
        chunk_size: int | None = 4,
        record: bool = True,
    ) -> None:
        super().__init__(
            Delay(delay, reply),
            profile=profile,
            name=name,
            chunk_size=chunk_size,
            record=record,
        )


class FakeStreamingModel(FakeChatModel):
    """A chat model whose streams are exactly these items; a plain call merges them.

    Args:
        items: The items of every stream.
        profile: See :class:`FakeChatModel`.
        name: See :class:`FakeChatModel`.
        record: See :class:`FakeChatModel`.
    """

    def __init__(
        self,
        items: Iterable[ModelStreamItem],
        *,
        profile: ModelProfile | None = None,
        name: str = "fake",
        record: bool = True,
    ) -> None:
        super().__init__(tuple(items), profile=profile, name=name, record=record)

    @classmethod
    def from_text_chunks(
        cls,
        chunks: Iterable[str],
        *,
        profile: ModelProfile | None = None,
        name: str = "fake",
        record: bool = True,
    ) -> Self:
        """Return a model that streams these texts, between a start and the whole of them.

        Raises:
            TypeError: ``chunks`` is a string and not several.
        """
        if isinstance(chunks, str):
            raise TypeError("several chunks are needed, as in from_text_chunks(['Sun', 'ny'])")
        texts = tuple(chunks)
        whole = "".join(texts)
        usage = estimate(1, count_tokens(say(whole).parts))
        message = AssistantMessage(content=[TextBlock(text=whole)], usage=usage)
        started = StreamStarted(f"{name}-1", name)
        completed = StreamCompleted(ModelResponse(message, "stop", None, f"{name}-1", name))
        deltas = [MessageDelta(text) for text in texts]
        items: list[ModelStreamItem] = [started, *deltas, completed]
        return cls(items, profile=profile, name=name, record=record)


def _echo(request: ModelRequest) -> Reply:
    texts = [message.text for message in request.messages if message.role == "user"]
    return say(texts[-1]) if texts else say()
