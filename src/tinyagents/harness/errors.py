"""Every exception of the harness.

    TinyAgentsError
    ├── InvalidRequestError            what the caller passed cannot work
    │   ├── ConfigurationError         a setting, key or combination is missing or wrong
    │   │   └── MissingDependencyError an optional package is not installed
    │   ├── DuplicateNameError         two components share a name
    │   ├── CapabilityError            the model cannot take part of the request
    │   ├── PromptError                a template cannot be read, or not be filled with these values
    │   ├── ToolSchemaError            a tool's parameters cannot be described
    │   └── ResumeError                a snapshot cannot be continued that way
    │       └── ApprovalError          the answer to a waiting call is no decision that it takes
    ├── ModelNotFoundError             no model of that name, or none that can do it
    ├── ModelError                     a model call failed
    │   ├── AuthenticationError        the key is missing, wrong or not allowed to
    │   ├── RateLimitError             too many requests, or the quota is used up
    │   ├── ServerError                the provider failed or is overloaded
    │   ├── NetworkError               no connection, or it broke
    │   ├── ProviderTimeoutError       no answer in time
    │   ├── BadRequestError            the provider refused the request
    │   │   └── ContextOverflowError   the prompt is too long for the model
    │   ├── ContentFilterError         blocked for its content
    │   ├── MalformedResponseError     the answer is not what the protocol says
    │   ├── EmptyResponseError         the answer holds nothing
    │   └── TruncatedResponseError     the answer was cut by the token limit
    ├── StructuredOutputError          the answer does not fit the asked-for type
    ├── ToolNotFoundError              the model called a tool that does not exist
    ├── ToolArgumentsError             the arguments do not fit the tool's schema
    ├── ToolFailedError                a tool raised, under a policy that raises
    ├── ToolTimeoutError               a tool ran out of time, under a policy that raises
    ├── ApproverError                  who should decide about a call failed to; it was not run
    ├── LimitExceededError             a limit of the run is used up
    ├── RunTimeoutError                the run's wall clock ran out
    ├── RunCancelledError              the run was cancelled
    ├── SubAgentDepthError             agents nested too deeply
    ├── MiddlewareError                a hook refused to go on
    ├── FetchError                     an address was not fetched
    │   └── FetchRefusedError          the policy does not let it be reached
    ├── UnsafePathError                a path leaves its root, or names no regular file
    └── MediaInputError                an image or a file cannot become part of a message

A :class:`~tinyagents.ToolError` is none of these: it is what a tool tells the model, not a failure.
"""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, ClassVar

if TYPE_CHECKING:
    from .agent_loop import AgentRun

__all__ = (
    "ApprovalError",
    "ApproverError",
    "AuthenticationError",
    "BadRequestError",
    "CapabilityError",
    "ConfigurationError",
    "ContentFilterError",
    "ContextOverflowError",
    "DuplicateNameError",
    "EmptyResponseError",
    "FetchError",
    "FetchRefusedError",
    "InvalidRequestError",
    "LimitExceededError",
    "MalformedResponseError",
    "MediaInputError",
    "MiddlewareError",
    "MissingDependencyError",
    "ModelError",
    "ModelNotFoundError",
    "NetworkError",
    "PromptError",
    "ProviderTimeoutError",
    "RateLimitError",
    "ResumeError",
    "RunCancelledError",
    "RunTimeoutError",
    "ServerError",
    "StructuredOutputError",
    "SubAgentDepthError",
    "TinyAgentsError",
    "ToolArgumentsError",
    "ToolFailedError",
    "ToolNotFoundError",
    "ToolSchemaError",
    "ToolTimeoutError",
    "TruncatedResponseError",
    "UnsafePathError",
)


class TinyAgentsError(Exception):
    """The root of the tree."""

    kind: ClassVar[str] = "error"
    """A stable name for logs, metrics and stored records."""

    retryable: bool = False
    """Whether the same request may succeed when sent again."""

    run: "AgentRun[Any, Any] | None" = None
    """The run so far, on every error that a run raises: messages, usage, cost and events."""

    def __init__(self, message: str) -> None:
        super().__init__(message)
        self.message = message

    def __reduce__(self) -> tuple[Any, ...]:
        # What Exception does calls the class with the message alone, and most take more.
        return _rebuilt, (type(self), self.args), self.__dict__.copy()


def _rebuilt(kind: type[TinyAgentsError], args: tuple[Any, ...]) -> TinyAgentsError:
    error = kind.__new__(kind, *args)
    error.args = args  # OSError, under the timeouts, sets them in __init__ only
    return error


class InvalidRequestError(TinyAgentsError, ValueError):
    """What the caller passed cannot work."""

    kind = "invalid_request"


class ConfigurationError(InvalidRequestError):
    """A setting, a key or a combination of both is missing or wrong."""

    kind = "configuration"


class MissingDependencyError(ConfigurationError, ImportError):
    """An optional package is not installed; ``extra`` names what to install."""

    kind = "missing_dependency"

    def __init__(self, package: str, *, extra: str) -> None:
        super().__init__(f"`{package}` is not installed: pip install 'tinyagents[{extra}]'")
        self.package = package
        self.extra = extra


class DuplicateNameError(InvalidRequestError):
    """Two components of one harness share a name."""

    kind = "duplicate_name"

    def __init__(self, message: str, *, name: str) -> None:
        super().__init__(message)
        self.name = name


class CapabilityError(InvalidRequestError):
    """The model cannot take part of the request; nothing was sent.

    Args:
        message: What it cannot take, and what helps.
        model: The provider's name for the model.
        provider: The provider.
        capability: The field of :class:`~tinyagents.harness.model.ModelProfile` that says so.
    """

    kind = "capability"

    def __init__(self, message: str, *, model: str, provider: str, capability: str) -> None:
        super().__init__(message)
        self.model = model
        self.provider = provider
        self.capability = capability


class PromptError(InvalidRequestError):
    """A template cannot be read, or not be filled with these values. No value is in the message.

    Args:
        message: What is wrong with which variable of which template.
        template: The template's name, or how it begins.
        reason: ``syntax``, a variable is not closed or has no name; ``missing``, it has no value;
            ``unknown``, the template has no such variable; ``value``, the value has no form there;
            ``setting``, an argument of the template is wrong.
        variable: The variable's name.
    """

    kind = "prompt"

    def __init__(
        self, message: str, *, template: str, reason: str, variable: str | None = None
    ) -> None:
        super().__init__(message)
        self.template = template
        self.reason = reason
        self.variable = variable


class ToolSchemaError(InvalidRequestError):
    """A tool's parameters cannot be described to a model."""

    kind = "tool_schema"


class ResumeError(InvalidRequestError):
    """A snapshot cannot be continued, or not with these answers."""

    kind = "resume"


class ApprovalError(ResumeError):
    """The answer to a call that waits is no decision, or none that it takes. Nothing has run.

    Args:
        message: What is wrong, and what to pass.
        interrupt_id: What the answer was given under.
        errors: What is wrong with it, one sentence each with the path.
    """

    kind = "approval"

    def __init__(
        self, message: str, *, interrupt_id: str | None = None, errors: Sequence[str] = ()
    ) -> None:
        super().__init__(message)
        self.interrupt_id = interrupt_id
        self.errors: tuple[str, ...] = tuple(errors)


class ModelNotFoundError(TinyAgentsError, LookupError):
    """No model is registered under the name, or none can do what the request needs."""

    kind = "model_not_found"

    def __init__(self, message: str, *, name: str | None = None) -> None:
        super().__init__(message)
        self.name = name


class ModelError(TinyAgentsError):
    """A model call failed. What is not known is ``None``.

    Args:
        message: What went wrong, without secrets.
        provider: The provider's name, such as ``openai``.
        model: The model that was asked.
        status: The HTTP status.
        code: The provider's own code or type for the failure.
        request_id: The provider's id of the request.
        retry_after: Seconds that the provider asked to wait.
        retryable: Overrides the class's default.
        raw: The body of the answer, decoded if it was JSON.
    """

    kind = "model_error"

    attempts: int = 1
    """How often the call was tried before this error was raised."""

    def __init__(
        self,
        message: str,
        *,
        provider: str | None = None,
        model: str | None = None,
        status: int | None = None,
        code: str | None = None,
        request_id: str | None = None,
        retry_after: float | None = None,
        retryable: bool | None = None,
        raw: Any = None,
    ) -> None:
        super().__init__(message)
        self.provider = provider
        self.model = model
        self.status = status
        self.code = code
        self.request_id = request_id
        self.retry_after = retry_after
        self.raw = raw
        if retryable is not None:
            self.retryable = retryable

    def __str__(self) -> str:
        facts = [
            f"{name} {value}"
            for name, value in (
                ("provider", self.provider),
                ("model", self.model),
                ("HTTP", self.status),
                ("code", self.code),
                ("request", self.request_id),
            )
            if value is not None
        ]
        return f"{self.message} ({', '.join(facts)})" if facts else self.message


class AuthenticationError(ModelError):
    """The key is missing, wrong, or not allowed to do this."""

    kind = "authentication"


class RateLimitError(ModelError):
    """Too many requests; not retryable when the quota or the balance is used up."""

    kind = "rate_limit"
    retryable = True


class ServerError(ModelError):
    """The provider failed, or is overloaded."""

    kind = "server"
    retryable = True


class NetworkError(ModelError):
    """No connection to the provider, or it broke."""

    kind = "network"
    retryable = True


class ProviderTimeoutError(ModelError, TimeoutError):
    """The provider did not answer in time, or a stream fell silent."""

    kind = "provider_timeout"
    retryable = True


class BadRequestError(ModelError):
    """The provider refused the request as it is."""

    kind = "bad_request"


class ContextOverflowError(BadRequestError):
    """The prompt, with the room for an answer, is longer than the model's context."""

    kind = "context_overflow"


class ContentFilterError(ModelError):
    """The prompt or the answer was blocked for its content."""

    kind = "content_filter"


class MalformedResponseError(ModelError):
    """The provider's answer is not what its protocol says."""

    kind = "malformed_response"


class EmptyResponseError(ModelError):
    """The answer holds neither text nor a tool call."""

    kind = "empty_response"


class TruncatedResponseError(ModelError):
    """The answer was cut by the token limit in the middle of tool calls, too often in a row."""

    kind = "truncated_response"


class StructuredOutputError(TinyAgentsError):
    """The answer does not fit the type that was asked for.

    Args:
        message: What was wrong.
        schema_name: The name of the asked-for type.
        text: What the model answered.
        errors: What validation found, one sentence each with the path.
    """

    kind = "structured_output"

    def __init__(
        self, message: str, *, schema_name: str, text: str = "", errors: Sequence[str] = ()
    ) -> None:
        super().__init__(message)
        self.schema_name = schema_name
        self.text = text
        self.errors: tuple[str, ...] = tuple(errors)


class ToolNotFoundError(TinyAgentsError, LookupError):
    """The model called a tool that the harness does not have."""

    kind = "tool_not_found"

    def __init__(self, message: str, *, name: str, available: Sequence[str] = ()) -> None:
        super().__init__(message)
        self.name = name
        self.available: tuple[str, ...] = tuple(available)


class ToolArgumentsError(TinyAgentsError, ValueError):
    """The arguments of a call do not fit the tool's schema."""

    kind = "tool_arguments"

    def __init__(self, message: str, *, tool: str, errors: Sequence[str] = ()) -> None:
        super().__init__(message)
        self.tool = tool
        self.errors: tuple[str, ...] = tuple(errors)


class ToolFailedError(TinyAgentsError):
    """A tool raised, and the policy is to raise as well; the cause is chained."""

    kind = "tool_failed"

    def __init__(self, message: str, *, tool: str, call_id: str) -> None:
        super().__init__(message)
        self.tool = tool
        self.call_id = call_id


class ToolTimeoutError(TinyAgentsError, TimeoutError):
    """A tool ran out of time, and the policy is to raise."""

    kind = "tool_timeout"

    def __init__(self, message: str, *, tool: str, call_id: str, seconds: float) -> None:
        super().__init__(message)
        self.tool = tool
        self.call_id = call_id
        self.seconds = seconds


class ApproverError(TinyAgentsError):
    """Who should decide about a call in place failed, or gave no decision: the call was not run."""

    kind = "approver"

    def __init__(self, message: str, *, tool: str, call_id: str) -> None:
        super().__init__(message)
        self.tool = tool
        self.call_id = call_id


class LimitExceededError(TinyAgentsError):
    """A limit of the run is used up.

    Args:
        message: Which limit, and what to raise or shorten.
        limit: ``model_calls`` or ``tool_calls``.
        maximum: The limit's value.
        counters: What the run had used of each limit when it stopped.
    """

    kind = "limit_exceeded"

    def __init__(
        self, message: str, *, limit: str, maximum: float, counters: Mapping[str, float]
    ) -> None:
        super().__init__(message)
        self.limit = limit
        self.maximum = maximum
        self.counters: dict[str, float] = dict(counters)


class RunTimeoutError(TinyAgentsError, TimeoutError):
    """The run's wall clock ran out."""

    kind = "run_timeout"

    def __init__(self, message: str, *, seconds: float) -> None:
        super().__init__(message)
        self.seconds = seconds


class RunCancelledError(TinyAgentsError):
    """The run was cancelled through its token or its handle."""

    kind = "run_cancelled"

    def __init__(self, message: str, *, reason: str | None = None) -> None:
        super().__init__(message)
        self.reason = reason


class SubAgentDepthError(TinyAgentsError):
    """A run was started deeper inside other runs than its limit allows."""

    kind = "subagent_depth"

    def __init__(self, message: str, *, depth: int, maximum: int) -> None:
        super().__init__(message)
        self.depth = depth
        self.maximum = maximum


class MiddlewareError(TinyAgentsError):
    """A hook refused to go on."""

    kind = "middleware"


class FetchError(TinyAgentsError):
    """An address was not fetched.

    Args:
        message: What went wrong, with which host.
        url: The address without its query and without credentials.
        reason: ``connection``, no connection or it broke; ``timeout``; ``size``, the body is larger
            than allowed; ``body``, its encoding cannot be undone; ``redirect``, too many of them, or
            one that leads nowhere. :class:`FetchRefusedError` has reasons of its own.
    """

    kind = "fetch"

    def __init__(self, message: str, *, url: str, reason: str) -> None:
        super().__init__(message)
        self.url = url
        self.reason = reason
        self.retryable: bool = reason in ("connection", "timeout")


class FetchRefusedError(FetchError):
    """The policy does not let the address be reached; nothing was sent to it.

    ``reason`` is what was refused: ``url`` (it cannot be read in one way only), ``credentials``,
    ``scheme``, ``host``, ``port`` or ``address``.
    """

    kind = "fetch_refused"


class UnsafePathError(TinyAgentsError, ValueError):
    """A path leaves its root, or names something that is no regular file.

    Args:
        message: What was wrong with which path.
        path: The path as it was given, shortened.
        reason: ``outside``, it or a link in it leads out of the root; ``link``, links in a circle, or
            one that appeared while it was opened; ``not_regular``, a folder, a device, a pipe or a
            socket; ``name``, it is too long, too deep, empty, or holds NUL.
    """

    kind = "unsafe_path"

    def __init__(self, message: str, *, path: str, reason: str) -> None:
        super().__init__(message)
        self.path = path
        self.reason = reason


class MediaInputError(TinyAgentsError, ValueError):
    """An image or a file cannot become part of a message.

    Args:
        message: What was wrong with which reference, and which setting decides.
        media: ``image`` or ``file``.
        reason: ``count``, there are too many; ``size``; ``type``, one that is not allowed or not
            known; ``disabled``, the policy turns this kind of reference off; ``refused``, the policy
            does not allow this address or path; ``not_found``; ``bad_reference``, it cannot be read as
            one; ``fetch_failed``; ``read_failed``.
        reference: The reference, shortened and without credentials; ``None`` for a count.
        limit: The limit that was passed, in bytes or in references.
    """

    kind = "media_input"

    def __init__(
        self,
        message: str,
        *,
        media: str,
        reason: str,
        reference: str | None = None,
        limit: int | None = None,
        retryable: bool = False,
    ) -> None:
        super().__init__(message)
        self.media = media
        self.reason = reason
        self.reference = reference
        self.limit = limit
        self.retryable = retryable
