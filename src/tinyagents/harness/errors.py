"""Every exception of the harness.

    TinyAgentsError
    ├── InvalidRequestError            what the caller passed cannot work
    │   ├── ConfigurationError         a setting, key or combination is missing or wrong
    │   │   ├── MissingDependencyError an optional package is not installed
    │   │   └── SandboxUnavailableError no sandbox for programs on this system
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
    │   │       └── ContextWindowError found so before it was sent, and not to be made short enough
    │   ├── ContentFilterError         blocked for its content
    │   ├── MalformedResponseError     the answer is not what the protocol says
    │   ├── EmptyResponseError         the answer holds nothing
    │   ├── ModelRefusedError          the model declined, under a middleware that raises
    │   └── TruncatedResponseError     the answer was cut by the token limit
    ├── SummaryError                   a conversation cannot be summarised
    ├── StructuredOutputError          the answer does not fit the asked-for type
    │   ├── OutputRefusedError         the model declined to give one
    │   └── OutputTruncatedError       it was cut by the token limit
    ├── ToolNotFoundError              the model called a tool that does not exist
    ├── ToolRefusedError               the model called a tool that a hook does not allow
    ├── ToolArgumentsError             the arguments do not fit the tool's schema
    ├── ToolFailedError                a tool raised, under a policy that raises
    ├── ToolTimeoutError               a tool ran out of time, under a policy that raises
    ├── ApproverError                  who should decide about a call failed to; it was not run
    ├── ToolServerError                a tool server cannot be reached, or refused a call
    ├── LimitExceededError             a limit of the run is used up
    ├── RunTimeoutError                the run's wall clock ran out
    ├── RunCancelledError              the run was cancelled
    ├── SubAgentDepthError             agents nested too deeply
    ├── MiddlewareError                a hook refused to go on
    ├── CacheError                     a response cache failed
    ├── ContentBlockedError            what was said is not allowed, by a redaction or a guardrail
    ├── FetchError                     an address was not fetched
    │   └── FetchRefusedError          the policy does not let it be reached
    ├── ProcessError                   a program was not run
    │   └── ProcessRefusedError        the policy does not allow it
    ├── UnsafePathError                a path leaves its root, or names no regular file
    │   └── WorkspaceViolationError    a path outside the run's workspace
    ├── WorkspaceError                 a workspace cannot be made, or not be removed
    └── MediaInputError                an image or a file cannot become part of a message

A :class:`~tinyagents.ToolError` is none of these: it is what a tool tells the model, not a failure.
"""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, ClassVar

if TYPE_CHECKING:
    from .agent_loop import AgentRun
    from .message import AssistantMessage

__all__ = (
    "ApprovalError",
    "ApproverError",
    "AuthenticationError",
    "BadRequestError",
    "CacheError",
    "CapabilityError",
    "ConfigurationError",
    "ContentBlockedError",
    "ContentFilterError",
    "ContextOverflowError",
    "ContextWindowError",
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
    "ModelRefusedError",
    "NetworkError",
    "OutputRefusedError",
    "OutputTruncatedError",
    "ProcessError",
    "ProcessRefusedError",
    "PromptError",
    "ProviderTimeoutError",
    "RateLimitError",
    "ResumeError",
    "RunCancelledError",
    "RunTimeoutError",
    "SandboxUnavailableError",
    "ServerError",
    "StructuredOutputError",
    "SubAgentDepthError",
    "SummaryError",
    "TinyAgentsError",
    "ToolArgumentsError",
    "ToolFailedError",
    "ToolNotFoundError",
    "ToolRefusedError",
    "ToolSchemaError",
    "ToolServerError",
    "ToolTimeoutError",
    "TruncatedResponseError",
    "UnsafePathError",
    "WorkspaceError",
    "WorkspaceViolationError",
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


class SandboxUnavailableError(ConfigurationError):
    """The policy demands a sandbox for programs, and this system cannot make one; nothing was run."""

    kind = "sandbox_unavailable"


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
            ``unknown``, the template has no such variable; ``value``, the value has no form there,
            or the values are no mapping; ``setting``, an argument of the template is wrong.
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


class ContextWindowError(ContextOverflowError):
    """The prompt does not fit the model's window, whatever was done about it; it was not sent.

    Args:
        message: How large it is, and what was tried.
        tokens: The estimated size of the prompt.
        window: What there is room for, without what is kept for the answer.
        tried: The steps that have made it shorter, in their order.
        provider: The provider's name.
        model: The model that would have been asked.
    """

    kind = "context_window"

    def __init__(
        self,
        message: str,
        *,
        tokens: int,
        window: int,
        tried: Sequence[str] = (),
        provider: str | None = None,
        model: str | None = None,
    ) -> None:
        super().__init__(message, provider=provider, model=model)
        self.tokens = tokens
        self.window = window
        self.tried: tuple[str, ...] = tuple(tried)


class ContentFilterError(ModelError):
    """The prompt or the answer was blocked for its content."""

    kind = "content_filter"


class MalformedResponseError(ModelError):
    """The provider's answer is not what its protocol says."""

    kind = "malformed_response"


class EmptyResponseError(ModelError):
    """The answer holds neither text nor a tool call."""

    kind = "empty_response"


class ModelRefusedError(ModelError):
    """The model declined to answer, or a content filter has cut its answer.

    Args:
        message: What happened, without the model's words.
        text: The model's words.
        reason: ``refusal`` or ``content_filter``.
        provider: The provider's name.
        model: The model that was asked.
        request_id: The provider's id of the request.
    """

    kind = "model_refused"

    def __init__(
        self,
        message: str,
        *,
        text: str = "",
        reason: str = "refusal",
        provider: str | None = None,
        model: str | None = None,
        request_id: str | None = None,
    ) -> None:
        super().__init__(message, provider=provider, model=model, request_id=request_id)
        self.text = text
        self.reason = reason


class TruncatedResponseError(ModelError):
    """The answer was cut by the token limit in the middle of tool calls, too often in a row."""

    kind = "truncated_response"


class SummaryError(TinyAgentsError):
    """A conversation cannot be summarised: what was written is empty, or no shorter.

    Args:
        message: What is wrong with the summary.
        source_tokens: The estimated size of what was summarised.
        summary_tokens: That of the summary.
    """

    kind = "summary"

    def __init__(
        self,
        message: str,
        *,
        source_tokens: int | None = None,
        summary_tokens: int | None = None,
    ) -> None:
        super().__init__(message)
        self.source_tokens = source_tokens
        self.summary_tokens = summary_tokens


class StructuredOutputError(TinyAgentsError):
    """The answer does not fit the type that was asked for.

    Args:
        message: What was wrong.
        schema_name: The name of the asked-for type.
        text: What the model answered.
        errors: What validation found, one sentence each with the path.
        answer: The whole message of the model, where it is known.
    """

    kind = "structured_output"

    def __init__(
        self,
        message: str,
        *,
        schema_name: str,
        text: str = "",
        errors: Sequence[str] = (),
        answer: "AssistantMessage | None" = None,
    ) -> None:
        super().__init__(message)
        self.schema_name = schema_name
        self.text = text
        self.errors: tuple[str, ...] = tuple(errors)
        self.answer = answer


class OutputRefusedError(StructuredOutputError):
    """The model declined to answer, or its provider withheld the answer; ``text`` says what came."""

    kind = "output_refused"


class OutputTruncatedError(StructuredOutputError):
    """The answer was cut by the token limit; ``text`` is the part that came, which may even parse."""

    kind = "output_truncated"


class ToolNotFoundError(TinyAgentsError, LookupError):
    """The model called a tool that the harness does not have."""

    kind = "tool_not_found"

    def __init__(self, message: str, *, name: str, available: Sequence[str] = ()) -> None:
        super().__init__(message)
        self.name = name
        self.available: tuple[str, ...] = tuple(available)


class ToolRefusedError(TinyAgentsError):
    """The model called a tool that a hook does not allow, or has hidden; the call was not run.

    Args:
        message: Why.
        tool: The tool that would have run.
        call_id: The call.
        by: The middleware.
    """

    kind = "tool_refused"

    def __init__(self, message: str, *, tool: str, call_id: str, by: str) -> None:
        super().__init__(message)
        self.tool = tool
        self.call_id = call_id
        self.by = by


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


class ToolServerError(TinyAgentsError):
    """A server of tools cannot be reached, has broken off, or refused a call.

    Args:
        message: What happened, and whether the call may have had effects.
        server: What the application calls the server.
        code: The code of the server's own answer; ``None`` where it gave none.
        retryable: Whether the same call may succeed when it is made again: a lost connection.
        stderr: What the server wrote last before it left; the values of its environment are out.
    """

    kind = "tool_server"

    def __init__(
        self,
        message: str,
        *,
        server: str,
        code: int | None = None,
        retryable: bool = False,
        stderr: str = "",
    ) -> None:
        super().__init__(message)
        self.server = server
        self.code = code
        self.retryable = retryable
        self.stderr = stderr


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


class CacheError(TinyAgentsError):
    """A response cache failed, or is not open."""

    kind = "cache"


class ContentBlockedError(TinyAgentsError):
    """What was said is not allowed; what it was is neither here nor in ``run``.

    Args:
        message: What was refused, and by whom.
        by: The middleware or the guard.
        stage: ``input``, ``output``, ``tool_arguments`` or ``tool_results``.
        labels: What was found in it.
        reason: Why, where a guard has said so.
    """

    kind = "content_blocked"

    def __init__(
        self,
        message: str,
        *,
        by: str,
        stage: str,
        labels: Sequence[str] = (),
        reason: str | None = None,
    ) -> None:
        super().__init__(message)
        self.by = by
        self.stage = stage
        self.labels: tuple[str, ...] = tuple(labels)
        self.reason = reason


class FetchError(TinyAgentsError):
    """An address was not fetched.

    Args:
        message: What went wrong, with which host.
        url: The address without its query and without credentials.
        reason: ``connection``, no connection or it broke; ``timeout``; ``size``, the body is larger
            than allowed; ``body``, its encoding cannot be undone; ``redirect``, too many of them, or
            one that leads nowhere. :class:`FetchRefusedError` has reasons of its own.
        limit: With ``size``, how many bytes the body may have.
    """

    kind = "fetch"

    def __init__(self, message: str, *, url: str, reason: str, limit: int | None = None) -> None:
        super().__init__(message)
        self.url = url
        self.reason = reason
        self.limit = limit
        self.retryable: bool = reason in ("connection", "timeout")


class FetchRefusedError(FetchError):
    """The policy does not let the address be reached; nothing was sent to it.

    ``reason`` is what was refused: ``url`` (it cannot be read in one way only), ``credentials``,
    ``scheme``, ``host``, ``port`` or ``address``.
    """

    kind = "fetch_refused"


class ProcessError(TinyAgentsError):
    """A program was not run, or it is not known how it ended.

    Args:
        message: What went wrong.
        program: The program, shortened.
        reason: ``not_found``, there is no such program; ``cwd``, the folder cannot be entered or is
            outside of the working folder; ``start``, the system refused to start it; ``setup``,
            what comes before that failed; ``lost``, whatever supervised it was killed.
            :class:`ProcessRefusedError` has ``refused``.
    """

    kind = "process"

    def __init__(self, message: str, *, program: str, reason: str) -> None:
        super().__init__(message)
        self.program = program
        self.reason = reason


class ProcessRefusedError(ProcessError):
    """The policy does not let the program be run; nothing was."""

    kind = "process_refused"

    def __init__(self, message: str, *, program: str) -> None:
        super().__init__(message, program=program, reason="refused")


class UnsafePathError(TinyAgentsError, ValueError):
    """A path leaves its root, or names something that is no regular file.

    The names of artifacts have further reasons: ``empty``, ``absolute``, ``parent`` (it holds ``..``),
    ``internal`` (a folder that holds none) and ``size``.

    Args:
        message: What was wrong with which path.
        path: The path as it was given, shortened.
        reason: ``outside``, it or a link in it leads out of the root; ``link``, links in a circle, or
            one that appeared while it was opened; ``not_regular``, a folder, a device, a pipe, a
            socket, or a link where none is followed; ``name``, it is too long, too deep, empty, or
            holds NUL; ``size``, the file is larger than allowed, or the folder holds too much;
            ``changed``, somebody else changed the file at the same time.
    """

    kind = "unsafe_path"

    def __init__(self, message: str, *, path: str, reason: str) -> None:
        super().__init__(message)
        self.path = path
        self.reason = reason


class WorkspaceViolationError(UnsafePathError):
    """A path, or the root of an inner workspace, is outside the workspace (``reason`` is ``outside``)."""

    kind = "workspace_violation"


class WorkspaceError(TinyAgentsError):
    """A workspace cannot be made, or not be removed.

    Args:
        message: What went wrong, and what to do.
        reason: ``limit``, there is more to copy than allowed; ``git``, git failed or is missing;
            ``dirty``, it holds work that would be lost; ``conflict``, the original has changed as
            well; ``foreign``, it was not made by this provider; ``timeout``, it took too
            long.
        paths: The files that it is about, at most a hundred of them.
    """

    kind = "workspace"

    def __init__(self, message: str, *, reason: str, paths: Sequence[str] = ()) -> None:
        super().__init__(message)
        self.reason = reason
        self.paths: tuple[str, ...] = tuple(paths[:100])


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
