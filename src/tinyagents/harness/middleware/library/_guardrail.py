"""Guards that judge what users say, what models answer, and what tools get and give."""

import inspect
import logging
from collections.abc import Iterable, Sequence
from functools import partial
from typing import Any, Literal, TypeVar

from pydantic import JsonValue

from ...concurrency import run_together
from ...context import RunContext, StopWithFinal
from ...errors import ConfigurationError, ContentBlockedError, RunCancelledError
from ...message import AssistantMessage, Message, TextBlock
from ...model import ModelResponse
from ...text import dump_json, parse_json
from ...tool import ToolResult
from .._base import Middleware, ModelDelta, ToolCall
from ._guards import Guard, Guarded, GuardStage, GuardVerdict

MessageT = TypeVar("MessageT", bound=Message)

_log = logging.getLogger("tinyagents.middleware")

_WITHHELD = "[withheld by a guardrail]"
_STRENGTH = ("allow", "flag", "replace", "block")


class GuardrailMiddleware(Middleware[Any]):
    """Has guards judge a run's input, answers, tool arguments and results before they are used.

    Hooks: ``compact`` and ``before_model`` (input), ``filter_deltas``, ``redaction`` and ``after_model``
    (output), ``before_tool``, ``after_tool``. It changes what is replaced or blocked, in the transcript
    too. Each verdict but ``allow`` is a ``guardrail.triggered`` event. A guard that raises blocks.

    Args:
        input: Judge each message of the user that a run is begun with.
        output: Judge each answer that has words.
        tool_arguments: Judge each call before it is run; a blocked one is refused, and the model told.
        tool_results: Judge each result; in a blocked one's place the model gets an error.
        blocked_text: What the run ends with where input or output is blocked; without it, it ends with
            a ``ContentBlockedError``.
        on_failure: Whether what a guard failed to judge is blocked or passes.
        hold: Whether a streamed answer is shown only when it was judged. Without it the pieces are shown
            as they come, which suits guards that only flag.

    Raises:
        ConfigurationError: There is no guard, or one is no function.
    """

    def __init__(
        self,
        *,
        input: Iterable[Guard] = (),
        output: Iterable[Guard] = (),
        tool_arguments: Iterable[Guard] = (),
        tool_results: Iterable[Guard] = (),
        blocked_text: str | None = None,
        on_failure: Literal["block", "allow"] = "block",
        hold: bool = True,
    ) -> None:
        self._guards: dict[GuardStage, tuple[Guard, ...]] = {
            "input": tuple(input),
            "output": tuple(output),
            "tool_arguments": tuple(tool_arguments),
            "tool_results": tuple(tool_results),
        }
        everyone = [guard for guards in self._guards.values() for guard in guards]
        if not everyone:
            raise ConfigurationError("a guardrail needs a guard, such as `output=[my_function]`")
        for guard in everyone:
            if not callable(guard):
                raise ConfigurationError(
                    f"{guard!r} is no guard: pass a function of (ctx, guarded)"
                )
        if on_failure not in ("block", "allow"):
            raise ConfigurationError("`on_failure` is `block` or `allow`")
        self._blocked_text = blocked_text
        self._on_failure = on_failure
        self._hold = hold

    async def compact(
        self, ctx: RunContext[Any], messages: Sequence[Message]
    ) -> Sequence[Message] | None:
        """Judge what the user has said since the last answer, once."""
        if not self._guards["input"] or self in ctx.scratch:
            return None
        ctx.scratch[self] = None
        changed: list[Message] = list(messages)
        for place in _new_input(messages):
            message = messages[place]
            verdict = await self._judge(ctx, Guarded("input", message.text, message=message))
            if (text := self._stands_in(verdict)) is not None:
                changed[place] = message.model_copy(update={"content": [TextBlock(text=text)]})
            if verdict.action == "block":
                # Raised when the transcript has changed: a hook that raises changes nothing.
                ctx.scratch[self] = self._end(ctx, "input", verdict)
                break
        return changed if changed != list(messages) else None

    async def before_model(self, ctx: RunContext[Any], request: object) -> None:
        """End the run over its input."""
        error = ctx.scratch.get(self)
        if error is not None:
            raise error

    def filter_deltas(self, ctx: RunContext[Any]) -> "_Nothing | None":
        """Hold an answer back until it was judged."""
        return _Nothing() if self._hold and self._guards["output"] else None

    def redaction(self, ctx: RunContext[Any]) -> "_Unjudged | None":
        """Keep no words of an answer that was broken off before it was judged."""
        if not self._guards["output"]:
            return None
        unjudged = ctx.scratch[self, "unjudged"] = _Unjudged()
        return unjudged

    async def after_model(self, ctx: RunContext[Any], response: ModelResponse) -> None:
        """Judge an answer."""
        if not self._guards["output"]:
            return
        error = await self._judge_answer(ctx, response)
        ctx.scratch[self, "unjudged"].judged = response.message
        if error is not None:
            raise error

    async def _judge_answer(
        self, ctx: RunContext[Any], response: ModelResponse
    ) -> ContentBlockedError | None:
        """Put what may be shown in an answer's place, and return the error that ends the run."""
        message = response.message
        words = message.text or message.refusal or ""
        if not words.strip():
            return None
        verdict = await self._judge(ctx, Guarded("output", words, message=message))
        text = self._stands_in(verdict)
        if text is None:
            return None
        blocked = verdict.action == "block"
        # A blocked answer's calls go with it.
        kept = [] if blocked else [block for block in message.content if block.type == "tool_call"]
        response.message = AssistantMessage(
            content=[TextBlock(text=text), *kept], usage=message.usage
        )
        response.raw, response.structured = {}, None
        return self._end(ctx, "output", verdict) if blocked else None

    async def before_tool(self, ctx: RunContext[Any], call: ToolCall) -> None:
        """Judge the arguments of a call."""
        if not self._guards["tool_arguments"]:
            return
        guarded = Guarded("tool_arguments", dump_json(call.arguments), call=call)
        verdict = await self._judge(ctx, guarded)
        if verdict.action == "block":
            call.refuse(verdict.reason or "a guardrail does not allow its arguments")
        elif verdict.action == "replace":
            arguments = _object_of(verdict.text or "")
            if arguments is None:
                call.refuse("a guardrail replaces its arguments by what is no JSON object")
            else:
                call.arguments = arguments

    async def after_tool(self, ctx: RunContext[Any], call: ToolCall, result: ToolResult) -> None:
        """Judge the result of a call."""
        if not self._guards["tool_results"]:
            return
        guarded = Guarded("tool_results", result.joined_text(), call=call)
        verdict = await self._judge(ctx, guarded)
        if verdict.action in ("block", "replace"):
            blocked = verdict.action == "block"
            text = f"{_WITHHELD}{f': {verdict.reason}' if verdict.reason else ''}"
            result.content = [TextBlock(text=text if blocked else verdict.text or "")]
            result.value, result.summary, result.artifacts = None, None, ()
            result.is_error = blocked or result.is_error

    async def _judge(self, ctx: RunContext[Any], guarded: Guarded) -> GuardVerdict:
        """Ask all guards of a stage at once, and return the strongest verdict; of equals the first."""
        guards = self._guards[guarded.stage]
        verdicts = await run_together([partial(self._ask, ctx, each, guarded) for each in guards])
        return max(verdicts, key=lambda verdict: _STRENGTH.index(verdict.action))

    async def _ask(self, ctx: RunContext[Any], guard: Guard, guarded: Guarded) -> GuardVerdict:
        name = getattr(guard, "__name__", type(guard).__name__)
        error_kind: str | None = None
        try:
            said = guard(ctx, guarded)
            verdict = await said if inspect.isawaitable(said) else said
            if verdict is None:
                return GuardVerdict.allow()
            _check(verdict)
        except RunCancelledError:
            raise
        except Exception as error:  # noqa: BLE001 - it is the policy that decides
            _log.warning("the guard `%s` failed", name, exc_info=ctx.loggable(error))
            error_kind = getattr(error, "kind", type(error).__name__)
            action = GuardVerdict.block if self._on_failure == "block" else GuardVerdict.flag
            verdict = action(f"the guard `{name}` failed")
        if verdict.action != "allow":
            ctx.emit(
                "guardrail.triggered",
                by=self.name,
                guard=name,
                stage=guarded.stage,
                verdict=verdict.action,
                reason=verdict.reason,
                call_id=guarded.call.id if guarded.call is not None else None,
                error_kind=error_kind,
            )
        return verdict

    def _stands_in(self, verdict: GuardVerdict) -> str | None:
        """Return what takes the place of a judged message; ``None`` where it passes."""
        match verdict.action:
            case "block":
                return self._blocked_text or _WITHHELD
            case "replace":
                return verdict.text
            case _:
                return None

    def _end(
        self, ctx: RunContext[Any], stage: GuardStage, verdict: GuardVerdict
    ) -> ContentBlockedError | None:
        """Ask the run to stop with the given text, or return the error that ends it."""
        if self._blocked_text is not None:
            ctx.request_control(StopWithFinal(self._blocked_text))
            return None
        reason = f": {verdict.reason}" if verdict.reason else ""
        return ContentBlockedError(
            f"a guardrail does not allow the {stage}{reason}",
            by=self.name,
            stage=stage,
            reason=verdict.reason,
        )


def _object_of(text: str) -> dict[str, JsonValue] | None:
    try:
        value = parse_json(text)
    except ValueError:
        return None
    return value if isinstance(value, dict) else None


def _check(verdict: object) -> None:
    if not isinstance(verdict, GuardVerdict):
        raise TypeError(f"a guard returned a `{type(verdict).__name__}`, and no `GuardVerdict`")
    if verdict.action == "replace" and verdict.text is None:
        raise TypeError("a guard that replaces says by which text")


def _new_input(messages: Sequence[Message]) -> list[int]:
    """Return the places of the user's messages after the last answer, in order."""
    places: list[int] = []
    for place in range(len(messages) - 1, -1, -1):
        if messages[place].role == "assistant":
            break
        if messages[place].role == "user":
            places.append(place)
    return places[::-1]


class _Unjudged:
    """Leaves everything as it is but the words of answers that no guard has seen."""

    def __init__(self) -> None:
        self.judged: AssistantMessage | None = None
        """The last answer that may be kept, whatever becomes of it afterwards."""

    def text(self, text: str) -> str:
        return text

    def message(self, message: MessageT) -> MessageT:
        return message

    def partial(self, message: AssistantMessage) -> AssistantMessage:
        if message is self.judged:
            return message
        words = ("text", "refusal", "reasoning")
        kept = [block for block in message.content if block.type not in words]
        return message.model_copy(update={"content": kept})

    def check(self) -> None:
        return None


class _Nothing:
    """Lets nothing pass: the answer is shown whole when hooks have seen it."""

    def push(self, delta: ModelDelta) -> Iterable[ModelDelta]:
        return ()

    def flush(self) -> Iterable[ModelDelta]:
        return ()
