"""A model call that a stored response may answer. Loaded only where a cache is attached."""

import logging
import math
from collections.abc import AsyncIterator
from dataclasses import dataclass, replace
from typing import Any, Literal, TypeAlias

from ..cache import (
    AttachedCache,
    Shared,
    decode_response,
    encode_response,
    is_storable,
    model_identity,
    scoped_cache_key,
)
from ..context import RunContext
from ..errors import CacheError, InvalidRequestError, StructuredOutputError
from ..model import (
    FittedRequest,
    ModelBinding,
    ModelProfile,
    ModelRequest,
    ModelResponse,
    ModelStreamItem,
    StreamCompleted,
    StreamStarted,
    Timing,
)
from ..text import error_text, parse_json, unfenced
from ._attempts import answered, ask_once, call_with_retries
from ._request import fit_to_model
from ._run import LoopRun, OpenCall
from ._shown import piece_of

_log = logging.getLogger("tinyagents.cache")

_SkipReason: TypeAlias = Literal[
    "no_cache_attached", "policy_disabled", "multi_turn_transcript", "no_model_identity", "no_key"
]


async def call_through_cache(
    run: LoopRun, call: OpenCall, binding: ModelBinding, request: ModelRequest
) -> ModelResponse:
    """Answer with a stored response; or else call the model, and store what it answers.

    Raises:
        CacheError: The cache failed, and the policy requires it.
        CapabilityError: The model cannot take part of the request; nothing was sent.
        ModelError: The call failed, its retries and fallbacks too.
    """
    attached, identity = run.spec.cache, model_identity(binding.model)
    if attached is None:
        return await _skip(run, call, binding, request, "no_cache_attached")
    if (reason := _held_back(run, request)) is not None:
        return await _skip(run, call, binding, request, reason)
    if identity is None:
        return await _skip(run, call, binding, request, "no_model_identity")
    fitted = fit_to_model(run, request, binding)
    policy = run.policy.cache
    try:
        # What is sent: what a model cannot take is no difference between requests.
        key = scoped_cache_key(
            fitted.request,
            identity=identity,
            streaming=run.ctx.streaming,
            namespace=policy.namespace,
        )
    except InvalidRequestError:
        return await _skip(run, call, binding, request, "no_key")
    cached = _CachedCall(run, call, binding, request, fitted, attached, key, identity)
    if not policy.coalesce:
        return await cached.replayed(await cached.find_or_ask())
    patience = run.limits.model_timeout or math.inf
    found = await attached.flights.run(key, cached.find_or_ask, cached.share, patience=patience)
    return await cached.replayed(found)


async def _skip(
    run: LoopRun,
    call: OpenCall,
    binding: ModelBinding,
    request: ModelRequest,
    reason: _SkipReason,
) -> ModelResponse:
    """Call the model as without a cache, and tell why; once for a call that hooks make again."""
    if not call.given_up:
        run.ctx.emit("cache.skipped", call_id=call.id, reason=reason)
    return await call_with_retries(run, call, binding, request)


def _held_back(run: LoopRun, request: ModelRequest) -> _SkipReason | None:
    """Return why the policy keeps a request from the cache, if it does."""
    policy = run.policy.cache
    enabled = policy.response_cache_enabled if request.cache is None else request.cache
    if not enabled:
        return "policy_disabled"
    if not policy.multi_turn and (
        request.continuation_id is not None
        or any(message.role in ("assistant", "tool") for message in request.messages)
    ):
        return "multi_turn_transcript"
    return None


@dataclass(slots=True, eq=False)
class _CachedCall:
    """A call whose answer may be stored."""

    run: LoopRun
    call: OpenCall
    binding: ModelBinding
    request: ModelRequest
    fitted: FittedRequest
    attached: AttachedCache
    key: str
    identity: str

    async def find_or_ask(self) -> ModelResponse:
        """Return the stored response, or the model's own after it was stored."""
        stored = await self._get()
        if stored is not None:
            return self._hit(stored, shared=False)
        self.run.ctx.emit("cache.miss", call_id=self.call.id, key=self.key)
        response = await call_with_retries(
            self.run, self.call, self.binding, self.request, self.fitted
        )
        response.cache_key = self.key
        if self._may_be_stored(response):
            # It was paid for: a cancellation while it is stored does not lose it.
            self.call.response = response
            await self._put(response)
        return response

    def share(self, response: ModelResponse) -> bytes | None:
        """Return what identical calls get of an answer: nothing of one that is not for others."""
        if not (response.served_from_cache or self._may_be_stored(response)):
            return None
        try:
            return encode_response(self._without_fitting(response))
        except ValueError:
            return None

    async def replayed(self, found: "ModelResponse | Shared[bytes]") -> ModelResponse:
        """Return an answer, and show the pieces of one that was not streamed just now."""
        match found:
            case Shared(data):
                response = self._hit(decode_response(data), shared=True)
            case _:
                response = found
        if not response.served_from_cache or not self.run.ctx.streaming:
            return response
        # It has arrived, whole and for nothing, whatever happens while it is shown.
        self.call.response = response
        binding = replace(self.binding, model=_Replay(response, self.binding.model.profile))
        return await ask_once(self.run, self.call, binding, self.fitted.request)

    def _hit(self, stored: ModelResponse, *, shared: bool) -> ModelResponse:
        """Make a stored response, which is this call's own, its answer."""
        run = self.run
        run.snapshot.counters.cache_hits += 1
        run.ctx.emit(
            "cache.hit", call_id=self.call.id, key=self.key, shared=shared, usage=stored.usage
        )
        stored.attempts, stored.timing = 1, Timing()
        stored.served_from_cache, stored.cache_key = True, self.key
        return answered(stored, self.binding, self.fitted)

    def _may_be_stored(self, response: ModelResponse) -> bool:
        """Whether an answer is a whole one of the very model that the key is about."""
        resolved = response.resolved_model
        return (
            resolved is not None
            and resolved.name == self.binding.resolved.name
            and is_storable(response)
            and self._has_its_form(response)
            # A model that has found out in the call what it must do without is another one now.
            and model_identity(self.binding.model) == self.identity
            and not self._must_be_hidden(response)
        )

    def _has_its_form(self, response: ModelResponse) -> bool:
        """Whether a typed answer has its type: another one would be refused at each hit anew."""
        output = self.run.output
        if output is None:
            return self.request.response_format is None or _is_json(response)
        calls = response.message.tool_calls
        try:
            for call in calls:
                if call.name in output.tool_names:
                    output.find_in_call(call)
            if not calls:
                output.find(response.text)
        except StructuredOutputError:
            return False
        return True

    def _must_be_hidden(self, response: ModelResponse) -> bool:
        """Whether an answer holds what a redaction takes out of it: that is not for a file."""
        if self.run.redaction is None:
            return False
        said = {"message": response.message.model_dump(mode="json"), "raw": dict(response.raw)}
        return bool(self.run.hide(said) != said)

    def _without_fitting(self, response: ModelResponse) -> ModelResponse:
        """Return the response without what was noted of this call's own request."""
        count = len(self.fitted.notices)
        return replace(response, notices=response.notices[count:]) if count else response

    async def _get(self) -> ModelResponse | None:
        try:
            return await self.attached.cache.get(self.key)
        except Exception as error:  # noqa: BLE001 - a cache is anybody's code
            self._failed("get", error)
            return None

    async def _put(self, response: ModelResponse) -> None:
        ttl = self.run.policy.cache.ttl
        try:
            await self.attached.cache.put(self.key, self._without_fitting(response), ttl=ttl)
        except Exception as error:  # noqa: BLE001 - a cache is anybody's code
            self._failed("put", error)

    def _failed(self, operation: Literal["get", "put"], error: Exception) -> None:
        """Tell of a failure of the cache, and raise it where the policy requires a cache."""
        kind = getattr(error, "kind", type(error).__name__)
        self.run.ctx.emit(
            "cache.failed",
            call_id=self.call.id,
            operation=operation,
            error=error_text(error),
            error_kind=kind,
        )
        if self.run.policy.cache.required:
            if isinstance(error, CacheError):
                raise error
            raise CacheError(f"the response cache failed to {operation}: {error!r}") from error
        _log.warning("the response cache failed to %s: %r", operation, error)


def _is_json(response: ModelResponse) -> bool:
    """Whether an answer that was to be JSON is; one that calls tools is to be none yet."""
    if response.message.tool_calls:
        return True
    try:
        parse_json(unfenced(response.text))
    except ValueError:
        return False
    return True


class _Replay:
    """A model that streams a response that there is already."""

    def __init__(self, response: ModelResponse, profile: ModelProfile) -> None:
        self._response = response
        self.profile = profile

    async def invoke(
        self, request: ModelRequest, *, ctx: RunContext[Any] | None = None
    ) -> ModelResponse:
        """Answer in one piece."""
        return self._response

    async def stream(
        self, request: ModelRequest, *, ctx: RunContext[Any] | None = None
    ) -> AsyncIterator[ModelStreamItem]:
        """Answer with one piece for each block."""
        response = self._response
        yield StreamStarted(response.response_id, response.model)
        for block in response.message.content:
            piece = piece_of(block)
            if piece is not None:
                yield piece
        yield StreamCompleted(response)
