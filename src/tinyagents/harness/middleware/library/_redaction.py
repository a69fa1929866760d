"""What must not be seen, taken out of all that a run takes in, shows and keeps."""

from collections import Counter
from collections.abc import Callable, Collection, Iterable
from typing import Any, Literal, TypeAlias, TypeVar, cast, get_args

from ...context import RunContext, StopWithFinal
from ...errors import ConfigurationError, ContentBlockedError
from ...message import AssistantMessage, Message
from ...model import MessageDelta, ModelResponse, ToolCallDelta
from ...redaction import (
    Detector,
    Redactor,
    Strategy,
    TextStream,
    redact_blocks,
    redact_calls,
    redact_message,
    redact_partial,
)
from ...tool import ToolResult
from .._base import Middleware, ModelDelta, ToolCall, ToolDelta

RedactionStage: TypeAlias = Literal["input", "output", "tool_arguments", "tool_results"]
"""Where a redaction looks."""

_STAGES: tuple[RedactionStage, ...] = get_args(RedactionStage)
MessageT = TypeVar("MessageT", bound=Message)
T = TypeVar("T")


class RedactionMiddleware(Middleware[Any]):
    """Takes what is found out of a whole run: its input, answers, tool calls, results, events, errors.

    Hooks: ``redaction``, ``filter_deltas``, ``after_model``, ``before_tool``, ``on_tool_delta``,
    ``after_tool``. It changes messages, tool arguments, results and pieces of streams, and the texts of events
    and errors; the system prompt stays. It emits nothing. A detector that raises ends the run.

    Args:
        detectors: Detectors, and literal texts; or a redactor, which has its own settings. Every
            detector that needs no setting by default.
        strategy: What is done with a match.
        strategies: Another strategy for some labels.
        mask: What is written; ``{label}`` in it is the label.
        hash_key: The secret of the strategy ``hash``.
        apply_to: Where it looks; everywhere by default. Without ``tool_arguments``, tools get what the
            model wrote, and so does whoever sees their calls.
        blocked_text: What the run ends with where something has the strategy ``block``; without it, it
            ends with a ``ContentBlockedError``.

    Raises:
        ConfigurationError: A setting is none, or some are given beside a redactor.
    """

    def __init__(
        self,
        detectors: Iterable[Detector | str] | Redactor | None = None,
        *,
        strategy: Strategy = "redact",
        strategies: dict[str, Strategy] | None = None,
        mask: str = "[REDACTED]",
        hash_key: bytes | str | None = None,
        apply_to: Collection[RedactionStage] = _STAGES,
        blocked_text: str | None = None,
    ) -> None:
        if isinstance(detectors, Redactor):
            if (strategy, strategies, mask, hash_key) != ("redact", None, "[REDACTED]", None):
                raise ConfigurationError(
                    "a redactor has its own strategies and masks: set them there"
                )
            self.redactor: Redactor = detectors
        else:
            self.redactor = Redactor(
                detectors,
                strategy=strategy,
                strategies=strategies,
                mask=mask,
                hash_key=hash_key,
            )
        if isinstance(apply_to, str) or not set(apply_to) <= set(_STAGES):
            raise ConfigurationError(
                f"`apply_to` is a set of {', '.join(_STAGES)}, not {apply_to!r}"
            )
        self.stages: frozenset[RedactionStage] = frozenset(apply_to)
        """Where it looks."""
        self.blocked_text: str | None = blocked_text
        self.counts: Counter[str] = Counter()
        """How many matches were replaced in all runs, by label; in streams and events none is counted twice."""

    def counts_of(self, ctx: RunContext[Any]) -> Counter[str]:
        """Return how many matches were replaced in this run, by label."""
        return self._of(ctx).found

    def redaction(self, ctx: RunContext[Any]) -> "_RunRedaction":
        """Hide what is found wherever no hook comes."""
        return self._of(ctx)

    def _of(self, ctx: RunContext[Any]) -> "_RunRedaction":
        made = ctx.scratch.get(self)
        if made is None:
            made = ctx.scratch[self] = _RunRedaction(self, ctx)
        return cast("_RunRedaction", made)

    def filter_deltas(self, ctx: RunContext[Any]) -> "_RedactingDeltas | None":
        """Hold back what may become a match; calls are held until they are whole."""
        if not self.stages & {"output", "tool_arguments"}:
            return None
        return _RedactingDeltas(self.redactor, self.stages)

    async def after_model(self, ctx: RunContext[Any], response: ModelResponse) -> None:
        """Clean the answer, and what else the provider said."""
        run = self._of(ctx)
        response.message = run.message(response.message)
        if "output" in self.stages:
            response.raw = self.redactor.json(response.raw)
            response.safety = self.redactor.json(response.safety)
            response.structured = self.redactor.json(response.structured)
            response.notices = self.redactor.json(response.notices)
            response.continue_turn = self.redactor.json(response.continue_turn)
        run.check()

    async def before_tool(self, ctx: RunContext[Any], call: ToolCall) -> None:
        """Clean the arguments, which a person or a hook may have changed."""
        if "tool_arguments" in self.stages:
            run = self._of(ctx)
            call.arguments = run.count(
                "tool_arguments", lambda found: self.redactor.json(call.arguments, found)
            )
            run.check()

    def on_tool_delta(self, ctx: RunContext[Any], delta: ToolDelta) -> None:
        """Clean what a running tool reports."""
        if "tool_results" in self.stages:
            delta.content = self.redactor.text(delta.content)

    async def after_tool(self, ctx: RunContext[Any], call: ToolCall, result: ToolResult) -> None:
        """Clean what a tool gives: its content, value, summary and references."""
        if "tool_results" not in self.stages:
            return
        run, redactor = self._of(ctx), self.redactor

        def clean(found: Counter[str]) -> None:
            result.content = redact_blocks(redactor, result.content, found)
            result.value = redactor.json(result.value, found)
            result.summary = redactor.json(result.summary)
            result.artifacts = redactor.json(result.artifacts)

        run.count("tool_results", clean)
        run.check()


class _RunRedaction:
    """The redaction of one run: its counts, and what it must not go on with."""

    def __init__(self, middleware: RedactionMiddleware, ctx: RunContext[Any]) -> None:
        self._middleware = middleware
        self._redactor = middleware.redactor
        self._stages = middleware.stages
        self._ctx = ctx
        self.found: Counter[str] = Counter()
        self._blocked: tuple[RedactionStage, tuple[str, ...]] | None = None

    def text(self, text: str) -> str:
        return self._redactor.text(text)

    def message(self, message: MessageT) -> MessageT:
        stage = _stage_of(message)
        arguments = "tool_arguments" in self._stages
        if stage is None or stage not in self._stages:
            return self._only_calls(message) if stage == "output" and arguments else message
        return self.count(
            stage,
            lambda found: redact_message(self._redactor, message, found, arguments=arguments),
        )

    def partial(self, message: AssistantMessage) -> AssistantMessage:
        if "output" not in self._stages:
            return self._only_calls(message) if "tool_arguments" in self._stages else message
        return self.count("output", lambda found: redact_partial(self._redactor, message, found))

    def _only_calls(self, message: MessageT) -> MessageT:
        return self.count(
            "tool_arguments", lambda found: redact_calls(self._redactor, message, found)
        )

    def count(self, stage: RedactionStage, clean: Callable[[Counter[str]], T]) -> T:
        """Count what is found, and remember whether the run must not go on."""
        found: Counter[str] = Counter()
        result = clean(found)
        if found:
            self.found.update(found)
            self._middleware.counts.update(found)
            if labels := self._redactor.blocked(found):
                self._blocked = self._blocked or (stage, labels)
        return result

    def check(self) -> None:
        blocked, self._blocked = self._blocked, None
        if blocked is None:
            return
        stage, labels = blocked
        text = self._middleware.blocked_text
        if text is not None:
            self._ctx.request_control(StopWithFinal(text))
            return
        what = ", ".join(labels)
        raise ContentBlockedError(
            f"the {stage.replace('_', ' ')} held what is not allowed: {what}",
            by=self._middleware.name,
            stage=stage,
            labels=labels,
        )


def _stage_of(message: Message) -> RedactionStage | None:
    match message.role:
        case "user":
            return "input"
        case "assistant":
            return "output"
        case "tool":
            return "tool_results"
        case _:
            return None


class _RedactingDeltas:
    """Shows the pieces of an answer redacted, as soon as nothing in them can be part of a match."""

    def __init__(self, redactor: Redactor, stages: Collection[RedactionStage]) -> None:
        self._redactor = redactor
        self._output = "output" in stages
        self._arguments = "tool_arguments" in stages
        self._text = TextStream(redactor)
        self._reasoning = TextStream(redactor)
        self._refusal = TextStream(redactor)

    def push(self, delta: ModelDelta) -> Iterable[ModelDelta]:
        if isinstance(delta, ToolCallDelta):
            # The loop shows a call of which nothing was shown whole, when it has been cleaned.
            return () if self._arguments else self._end_of_reasoning(delta)
        if not self._output:
            return (delta,)
        shown: list[ModelDelta] = []
        if delta.reasoning:
            _put(shown, reasoning=self._reasoning.push(delta.reasoning))
        if delta.text or delta.refusal:
            # A thought has ended where something else begins; the texts of an answer are one text.
            _put(shown, reasoning=self._reasoning.flush())
            _put(
                shown,
                text=self._text.push(delta.text) if delta.text else "",
                refusal=self._refusal.push(delta.refusal) if delta.refusal else "",
            )
        return shown

    def _end_of_reasoning(self, delta: ModelDelta) -> Iterable[ModelDelta]:
        shown: list[ModelDelta] = []
        _put(shown, reasoning=self._reasoning.flush())
        return (*shown, delta)

    def flush(self) -> Iterable[ModelDelta]:
        shown: list[ModelDelta] = []
        _put(shown, reasoning=self._reasoning.flush())
        _put(shown, text=self._text.flush(), refusal=self._refusal.flush())
        return shown


def _put(shown: list[ModelDelta], **texts: str) -> None:
    if any(texts.values()):
        shown.append(MessageDelta(**texts))
