"""Keeps a run's context inside its model's window."""

import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Final

from ...context import RunContext
from ...errors import ConfigurationError, ContextOverflowError, ContextWindowError
from ...message import Message
from ...model import ModelRequest, ModelResponse
from ...summarization import (
    ContextArchive,
    ContextSize,
    ContextStep,
    Shortened,
    ShorteningTask,
    Trigger,
    WindowFraction,
    apply_steps,
    compaction_request,
    default_steps,
    goal_of,
    put_away,
)
from ...token_estimation import TokenCounterLike, TokenEstimator
from .._base import Middleware, ModelHandler
from ._context_measure import (
    Measured,
    Room,
    profile_for,
    room_for,
    warn_of_unknown_window,
)
from ._shortening import send_instead

_log = logging.getLogger("tinyagents.middleware")

_LEARNED: Final = 0.9
"""What is believed to fit after a provider has refused a prompt: this share of it."""
_REST: Final = 0.1
"""How much of its size a context that cannot be made small enough grows before that is tried again."""


@dataclass(frozen=True, slots=True)
class _Believed:
    """What is kept with the run of how much fits."""

    fits: Mapping[str, int] = field(default_factory=dict[str, int])
    """What refusals by their providers let one believe to fit, by model: a fallback may take less."""
    rest: int = 0
    """The size below which nothing is tried again, since the steps could not get below the trigger."""


_NOTHING: Final = _Believed()


class ContextWindowMiddleware(Middleware[Any]):
    """Makes the conversation shorter, step by step, before it outgrows the model's window.

    Hooks: ``compact`` shortens the transcript once it has come to the ``trigger``, down to ``target``,
    so that it then stays as it is for many calls; ``wrap_model`` measures each request, shortens what is
    still too long for this call alone, and after a provider's ``ContextOverflowError`` asks again with
    less. Events: ``context.pressure``, ``context.compressed``, ``context.overflowed``,
    ``context.window_unknown`` and those of a summary.

    Register it last, so that it sees requests as the other middlewares leave them.

    Args:
        steps: What to do, in order, until it fits; :func:`default_steps` by default.
        window: The tokens that the model takes; by default what its profile says.
        reserve: What is kept of the window for the answer; by default what the request asks for or the
            model can give, a quarter of the window at most.
        trigger: When the transcript is made shorter; its window is what is left without the reserve.
        target: Down to which share of its size, or of the window where the conversation is larger.
        recoveries: How often a call that a provider refuses as too long is made again with less.
        archive: Where dropped messages go, for :func:`search_dropped_tool`.
        counter: Counts tokens: see :class:`TokenEstimator`.

    Raises:
        ConfigurationError: A number is out of range, or there are no steps.
    """

    def __init__(
        self,
        steps: Sequence[ContextStep] | None = None,
        *,
        window: int | None = None,
        reserve: int | None = None,
        trigger: Trigger | None = None,
        target: float = 0.6,
        recoveries: int = 1,
        archive: ContextArchive | None = None,
        counter: TokenCounterLike | None = None,
    ) -> None:
        if window is not None and window < 1:
            raise ConfigurationError(f"`window` is {window}: it must be above 0")
        if reserve is not None and not 0 <= reserve < (window or reserve + 1):
            raise ConfigurationError(f"`reserve` is {reserve}: it is 0 or more, below `window`")
        if not 0 < target < 1:
            raise ConfigurationError(f"`target` is {target!r}: it must be above 0 and below 1")
        if recoveries < 0:
            raise ConfigurationError(f"`recoveries` is {recoveries}: it must not be negative")
        self._steps = tuple(default_steps() if steps is None else steps)
        if not self._steps:
            raise ConfigurationError("`steps` is empty: leave it out for the default steps")
        for step in self._steps:
            if isinstance(step, type) or not callable(getattr(step, "shorten", None)):
                raise ConfigurationError(f"{step!r} is no step: it has no method `shorten`")
        self._window = window
        self._reserve = reserve
        self._trigger = trigger or WindowFraction(0.8)
        self._target = target
        self._recoveries = recoveries
        self._archive = archive
        self._estimator = TokenEstimator(counter)

    async def compact(
        self, ctx: RunContext[Any], messages: Sequence[Message]
    ) -> Sequence[Message] | None:
        """Make the transcript shorter where it has come to the trigger, or where that was asked for."""
        with compaction_request(ctx) as focus:
            return await self._compacted(ctx, messages, focus)

    async def _compacted(
        self, ctx: RunContext[Any], messages: Sequence[Message], focus: str | None
    ) -> Sequence[Message] | None:
        measured, room = self._measured(ctx), self._room(ctx)
        await self._estimator.prepare(messages)
        tokens = measured.of_transcript(self._estimator, messages)
        if focus is None and not self._is_due(ctx, tokens, len(messages), room):
            return None
        target = int(self._target * min(tokens, room.limit if room is not None else tokens))
        # Steps go by the estimate alone, which can be below what the provider has counted.
        scale = _scale(tokens, self._estimator.messages(messages) + measured.overhead)
        task = replace(
            self._task(ctx, messages, int(target / scale) - measured.overhead),
            reason="the model asked for it" if focus is not None else repr(self._trigger),
            focus=focus,
            kept=True,
        )
        shorter = await apply_steps(self._steps, messages, task)
        size = int((shorter.tokens + measured.overhead) * scale)
        if self._fires(size, len(shorter.messages), room):
            self._believe(ctx, replace(self._believed(ctx), rest=int(size * (1 + _REST)) + 1))
        if not shorter.steps:
            return None
        if self._archive is not None:
            await put_away(ctx, self._archive, messages, shorter.messages)
        measured.shortened(shorter.messages)
        measured.transcript = shorter.tokens
        return shorter.messages

    async def wrap_model(
        self, ctx: RunContext[Any], request: ModelRequest, call_next: ModelHandler
    ) -> ModelResponse:
        """Send what fits, and less where the provider says that it does not."""
        measured = self._measured(ctx)
        await self._estimator.prepare(request.messages)
        tokens = measured.of_request(ctx, self._estimator, request)
        room = self._room(ctx)
        if room is None:
            warn_of_unknown_window(ctx, self.name, measured)
        else:
            ctx.emit("context.pressure", tokens=tokens, limit=room.limit, window=room.window)
            if tokens > room.limit:
                tokens = await self._fit(ctx, request, tokens, room.limit)
        try:
            return await call_next(request)
        except ContextWindowError:
            raise
        except ContextOverflowError as error:
            return await self._recover(ctx, request, call_next, tokens, error)

    async def _fit(
        self, ctx: RunContext[Any], request: ModelRequest, tokens: int, limit: int
    ) -> int:
        """Make a request fit, for this call alone, and return its size.

        Raises:
            ContextWindowError: It does not fit, whatever was done.
        """
        shorter, tokens = await self._shorten_request(
            ctx, request, tokens, limit, "it does not fit"
        )
        if tokens <= limit:
            return tokens
        profile = profile_for(ctx, request)
        tried = ", ".join(shorter.steps) or "no step could make it shorter"
        raise ContextWindowError(
            f"the prompt has about {tokens} tokens, and the model has room for {limit}; "
            f"tried: {tried}",
            tokens=tokens,
            window=limit,
            tried=shorter.steps,
            provider=(profile.provider or None) if profile is not None else None,
            model=(profile.model or None) if profile is not None else None,
        )

    async def _recover(
        self,
        ctx: RunContext[Any],
        request: ModelRequest,
        call_next: ModelHandler,
        tokens: int,
        error: ContextOverflowError,
    ) -> ModelResponse:
        """Ask again with less, each time less than before; or raise what the provider has said."""
        for _ in range(self._recoveries):
            self._learn(ctx, tokens)
            target = int(self._target * tokens)
            shorter, size = await self._shorten_request(
                ctx, request, tokens, target, "the provider refused it"
            )
            if not shorter.steps or size >= tokens:
                break
            self._tell_overflow(ctx, tokens, recovering=True)
            tokens = size
            try:
                return await call_next(request)
            except ContextOverflowError as again:
                _log.debug("a shortened prompt was refused too", exc_info=ctx.loggable(again))
        self._tell_overflow(ctx, tokens, recovering=False)
        raise error

    async def _shorten_request(
        self, ctx: RunContext[Any], request: ModelRequest, tokens: int, target: int, reason: str
    ) -> tuple[Shortened, int]:
        """Make a request of so many tokens shorter in place; return how, and its size."""
        told = self._estimator.request(request, reported=False)
        beside, scale = told.total - told.messages, _scale(tokens, told.total)
        task = self._task(ctx, request.messages, int(target / scale) - beside)
        task = replace(task, reason=reason)
        shorter = await apply_steps(self._steps, request.messages, task)
        if shorter.steps:
            send_instead(request, shorter.messages)
        return shorter, int((shorter.tokens + beside) * scale)

    def _task(
        self, ctx: RunContext[Any], messages: Sequence[Message], target: int
    ) -> ShorteningTask:
        return ShorteningTask(
            ctx=ctx,
            target=max(0, target),
            estimator=self._estimator,
            goal=goal_of(ctx, messages),
            by=self.name,
        )

    def _is_due(self, ctx: RunContext[Any], tokens: int, messages: int, room: Room | None) -> bool:
        if not self._fires(tokens, messages, room):
            return False
        over = room is not None and tokens > room.limit
        return over or tokens >= self._believed(ctx).rest

    def _fires(self, tokens: int, messages: int, room: Room | None) -> bool:
        window = room.limit if room is not None else None
        return self._trigger.fires(ContextSize(tokens=tokens, messages=messages, window=window))

    def _room(self, ctx: RunContext[Any]) -> Room | None:
        request = self._measured(ctx).request
        room = room_for(ctx, request, window=self._window, reserve=self._reserve)
        fits = self._believed(ctx).fits.get(self._model(ctx))
        if fits is None or (room is not None and room.limit <= fits):
            return room
        return Room(window=room.window if room is not None else fits, limit=fits)

    def _measured(self, ctx: RunContext[Any]) -> Measured:
        found = ctx.scratch.get(self)
        if found is None:
            found = ctx.scratch[self] = Measured.begin(ctx, self._estimator)
        return found

    def _model(self, ctx: RunContext[Any]) -> str:
        profile = profile_for(ctx, self._measured(ctx).request)
        return f"{profile.provider}/{profile.model}" if profile is not None else ""

    def _learn(self, ctx: RunContext[Any], tokens: int) -> None:
        believed, model = self._believed(ctx), self._model(ctx)
        fits = max(1, int(tokens * _LEARNED))
        if fits < believed.fits.get(model, tokens):
            self._believe(ctx, replace(believed, fits={**believed.fits, model: fits}))

    def _believed(self, ctx: RunContext[Any]) -> _Believed:
        note = ctx.notes.get(self._note)
        if not isinstance(note, dict):
            return _NOTHING
        fits, rest = note.get("fits"), note.get("rest")
        known = fits.items() if isinstance(fits, dict) else ()
        return _Believed(
            {model: size for model, size in known if isinstance(size, int)},
            rest if isinstance(rest, int) else 0,
        )

    def _believe(self, ctx: RunContext[Any], believed: _Believed) -> None:
        ctx.notes[self._note] = {"fits": {**believed.fits}, "rest": believed.rest}

    @property
    def _note(self) -> str:
        return f"{self.name}.believed"

    def _tell_overflow(self, ctx: RunContext[Any], tokens: int, *, recovering: bool) -> None:
        room = self._room(ctx)
        ctx.emit(
            "context.overflowed",
            tokens=tokens,
            window=room.window if room is not None else None,
            recovering=recovering,
        )


def _scale(tokens: int, estimated: int) -> float:
    """Return by how much what is known of a size is above its estimate; 1 where it is not."""
    return max(1.0, tokens / max(1, estimated))
