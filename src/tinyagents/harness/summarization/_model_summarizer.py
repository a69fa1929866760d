"""The summariser that asks a model."""

import hashlib
from collections import OrderedDict
from collections.abc import Iterator, Sequence
from typing import Any, Final

from ..context import RunContext
from ..errors import ConfigurationError, SummaryError
from ..message import Message, SystemMessage, ToolMessage, UserMessage
from ..model import ChatModel, ModelRequest, ModelSettings, fit_request, side_call
from ..options import check_above_zero
from ..text import dump_json
from ..token_estimation import TokenEstimator
from ._prompt import SUMMARY_INSTRUCTIONS, SUMMARY_PROMPT_VERSION
from ._records import SummaryRecord, is_summary, message_digest
from ._render import MOST_OF_A_PAYLOAD, render_message
from ._summarizer import check_source, concluded

_DEFAULT_SOURCE_TOKENS: Final = 50_000
"""How much a model reads at once whose window is not known."""
_LEAST_SOURCE_TOKENS: Final = 1_000
_MOST_GOAL: Final = 1_000
_MOST_SIZES: Final = 10
_MARK: Final = "[summary of "


class ModelSummarizer:
    """Has a model say what was said, with the goal of the conversation in view.

    The summary is a user message: what a model makes of others' words must not have the weight of
    instructions. Its first line and the sizes of long results are put in by code. What is longer than
    the model reads at once is summarised part by part, each with the summary so far. The same messages
    for the same goal are summarised once.

    Args:
        model: Who summarises, or the name by which the run's harness has it.
        instructions: What it is told, in place of the words here.
        prompt_version: What provenance calls ``instructions``; by default their hash.
        settings: How it answers. ``max_tokens`` is the length of a summary.
        timeout: Seconds for each of its answers.
        max_source_tokens: How much it reads at once; by default what its window has room for, or
            50,000 tokens where that is not known.
        cache_size: How many summaries are kept to be used again; 0 for none.
        estimator: Counts tokens.

    Raises:
        ConfigurationError: A number is out of range.
    """

    def __init__(
        self,
        model: ChatModel | str,
        *,
        instructions: str | None = None,
        prompt_version: str | None = None,
        settings: ModelSettings | None = None,
        timeout: float = 60.0,
        max_source_tokens: int | None = None,
        cache_size: int = 256,
        estimator: TokenEstimator | None = None,
    ) -> None:
        check_above_zero(timeout=timeout)
        if max_source_tokens is not None and max_source_tokens < _LEAST_SOURCE_TOKENS:
            raise ConfigurationError(
                f"`max_source_tokens` is {max_source_tokens}: a summary needs at least "
                f"{_LEAST_SOURCE_TOKENS} to be made of"
            )
        if cache_size < 0:
            raise ConfigurationError(f"`cache_size` is {cache_size}: it must not be negative")
        self._model = model
        self._instructions = instructions or SUMMARY_INSTRUCTIONS
        self.prompt_version: str = prompt_version or _version_of(instructions)
        self._settings = settings or ModelSettings(max_tokens=2_000)
        self._timeout = timeout
        self._max_source_tokens = max_source_tokens
        self._cache_size = cache_size
        self._estimator = estimator or TokenEstimator()
        self._cache: OrderedDict[str, tuple[str, str | None]] = OrderedDict()

    async def summarize(
        self,
        messages: Sequence[Message],
        *,
        goal: str | None = None,
        reason: str = "",
        ctx: RunContext[Any] | None = None,
    ) -> SummaryRecord:
        """Return what the model makes of the messages.

        Raises:
            InvalidRequestError: There are no messages.
            ModelNotFoundError: The run has no model of that name.
            ModelError: The model could not be asked.
            SummaryError: What it wrote is empty, or no shorter than the messages.
        """
        check_source(messages)
        model = self._resolved(ctx)
        key = self._key(model, messages, goal)
        known = self._cache.get(key)
        if known is None:
            known = await self._written(model, messages, goal, ctx)
        text, name = known
        record = concluded(
            messages,
            UserMessage(content=text),
            estimator=self._estimator,
            reason=reason,
            summarizer=type(self).__name__,
            model=name,
            prompt_version=self.prompt_version,
        )
        taken, given = (
            record.provenance.summary_token_estimate,
            record.provenance.original_token_estimate,
        )
        if taken >= given:
            raise SummaryError(
                f"the summary is no shorter than its source: about {taken} tokens for {given}",
                source_tokens=given,
                summary_tokens=taken,
            )
        self._remember(key, known)
        return record

    def _resolved(self, ctx: RunContext[Any] | None) -> ChatModel:
        if not isinstance(self._model, str):
            return self._model
        if ctx is None:
            raise ConfigurationError(
                f"the summariser names the model `{self._model}` of a harness, and there is no run "
                "to look it up in: pass `ctx`, or give the model itself"
            )
        return ctx.models.get(self._model)

    async def _written(
        self,
        model: ChatModel,
        messages: Sequence[Message],
        goal: str | None,
        ctx: RunContext[Any] | None,
    ) -> tuple[str, str | None]:
        """Return the summary's text and who wrote it."""
        said = ""
        name = model.profile.model or None
        for part in self._parts(model, messages):
            source = f"[the summary so far]\n{said}\n\n{part}" if said else part
            request = ModelRequest(
                [
                    SystemMessage(content=self._instructions),
                    UserMessage(content=_asked(source, goal)),
                ],
                settings=self._settings,
            )
            fitted = fit_request(request, model.profile, "degrade").request
            response = await side_call(model, fitted, ctx=ctx, seconds=self._timeout)
            said = response.text.strip()
            if not said:
                what = "refused to summarise" if response.message.refusal else "wrote no summary"
                raise SummaryError(f"`{name or type(model).__name__}` {what}")
            if response.finish_reason == "length":
                said += "\n[the summary was cut here]"
        return "\n".join((*self._facts(messages, goal), said)), name

    def _parts(self, model: ChatModel, messages: Sequence[Message]) -> Iterator[str]:
        """Yield the messages in words, as many at once as the model has room for."""
        room = self._room(model)
        part: list[str] = []
        left = room
        for message in messages:
            words = message.text if is_summary(message) else render_message(message)
            need = self._estimator.text(words)
            if need > room:
                words = words[: len(words) * room // need]
                need = room
            if need > left and part:
                yield "\n\n".join(part)
                part, left = [], room
            part.append(words)
            left -= need
        yield "\n\n".join(part)

    def _room(self, model: ChatModel) -> int:
        if self._max_source_tokens is not None:
            return self._max_source_tokens
        window = model.profile.max_input_tokens
        if window is None:
            return _DEFAULT_SOURCE_TOKENS
        # Half of the window at most: what is read is an estimate, and the summary so far is read too.
        return max(_LEAST_SOURCE_TOKENS, window // 2 - (self._settings.max_tokens or 0))

    def _facts(self, messages: Sequence[Message], goal: str | None) -> Iterator[str]:
        """Yield what a model would have to guess."""
        tokens = self._estimator.messages(messages)
        yield f"{_MARK}{len(messages)} earlier messages, about {tokens} tokens]"
        if goal:
            yield f"The user's request: {_short(goal)}"
        sizes = [_size(message) for message in messages if message.role == "tool"]
        yield from [size for size in sizes if size][-_MOST_SIZES:]

    def _key(self, model: ChatModel, messages: Sequence[Message], goal: str | None) -> str:
        profile = model.profile
        facts = [
            self.prompt_version,
            self._instructions,
            self._settings.model_dump_json(exclude={"extra_headers", "timeout"}),
            profile.provider,
            profile.model,
            goal,
            *(message_digest(message) for message in messages),
        ]
        return hashlib.sha256(dump_json(facts).encode()).hexdigest()

    def _remember(self, key: str, written: tuple[str, str | None]) -> None:
        if not self._cache_size:
            return
        self._cache[key] = written
        self._cache.move_to_end(key)
        if len(self._cache) > self._cache_size:
            self._cache.popitem(last=False)


def _version_of(instructions: str | None) -> str:
    if instructions is None:
        return SUMMARY_PROMPT_VERSION
    return f"custom-{hashlib.sha256(instructions.encode()).hexdigest()[:8]}"


def _asked(source: str, goal: str | None) -> str:
    """Return the question, with nothing in the conversation that looks like its end."""
    safe = source.replace("</conversation", "< /conversation")
    aim = f"The goal: {_short(goal)}\n\n" if goal else ""
    return f"{aim}<conversation>\n{safe}\n</conversation>\n\nWrite the summary."


def _short(goal: str) -> str:
    words = " ".join(goal.split())
    return words if len(words) <= _MOST_GOAL else f"{words[:_MOST_GOAL]} [...]"


def _size(message: ToolMessage) -> str | None:
    """Return the true size of a result that was too long to be read whole."""
    length = len(message.text)
    if length <= MOST_OF_A_PAYLOAD:
        return None
    return f"The result of {message.name or 'a tool'} ({message.tool_call_id}) had {length} characters."
