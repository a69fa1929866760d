"""A gate that judges tools by their policy."""

from collections.abc import Collection
from dataclasses import dataclass
from typing import Any

from ...approval import ApprovalRequest, Approve, Decision
from ...context import RunContext
from ...errors import ConfigurationError
from ...model import ModelRequest
from ...tool import SIDE_EFFECTS, SideEffect, Tool, ToolResult, cut_result
from .._base import Middleware, ToolCall
from .._hiding import hide_tools, known_tools


@dataclass(frozen=True, kw_only=True, eq=False)
class ToolPolicyMiddleware(Middleware[Any]):
    """Allows only tools whose :class:`~tinyagents.harness.tool.ToolPolicy` says what is asked of it.

    A tool that it does not allow is hidden from the model and, if called all the same, refused.
    Without any option it allows all. The rules are looked at in the order of the options.

    Hooks: ``before_model``, ``before_tool``, and ``after_tool`` where results are cut. It changes the
    tools and the tool choice of a request. Events: ``tool.filtered``, ``tool.refused``.

    Raises:
        ConfigurationError: There is no such side effect, or names are given as one text.
    """

    require_classification: bool = False
    """Allow only tools that somebody has classified."""
    deny: Collection[SideEffect] = ()
    """Side effects that no tool may have."""
    require_background_safe: bool = False
    """Allow only tools that are safe while nobody watches."""
    require_sandbox: bool = False
    """Allow tools that demand a sandbox only where the run's workspace requires one."""
    approved: Collection[str] | None = None
    """Tools that are approved beforehand: of those that need approval only these are allowed, and
    nobody is asked about their calls, unless another middleware asks."""
    enforce_result_bytes: bool = False
    """Cut a result whose text is longer than the tool's ``max_result_bytes``, as an error."""

    def __post_init__(self) -> None:
        for option in ("deny", "approved"):
            names = getattr(self, option)
            if isinstance(names, str):
                raise ConfigurationError(f"`{option}` is a collection of names: pass [{names!r}]")
        if unknown := [name for name in self.deny if name not in SIDE_EFFECTS]:
            raise ConfigurationError(
                f"there is no side effect {unknown[0]!r}; there are {', '.join(SIDE_EFFECTS)}"
            )

    @classmethod
    def strict(cls) -> "ToolPolicyMiddleware":
        """Allow only classified tools that neither destroy nor pay anything.

        ``dataclasses.replace`` adds further rules.
        """
        return cls(require_classification=True, deny=("destructive", "payment"))

    async def before_model(self, ctx: RunContext[Any], request: ModelRequest) -> None:
        """Hide the tools that are not allowed."""
        denied = [
            name for name in known_tools(ctx, request) if self._problem(ctx, ctx.tools.find(name))
        ]
        hide_tools(ctx, request, denied, by=self.name)

    async def before_tool(self, ctx: RunContext[Any], call: ToolCall) -> None:
        """Refuse a call of a tool that is not allowed."""
        if call.tool is None:
            return
        if problem := self._problem(ctx, call.tool):
            call.refuse(problem)
        elif self.approved is not None and call.tool.policy.access.approval_required:
            call.require_approval(approver=self._approve, may_remember=False)

    async def after_tool(self, ctx: RunContext[Any], call: ToolCall, result: ToolResult) -> None:
        """Cut a result that is too long."""
        limit = call.tool.policy.runtime.max_result_bytes if call.tool is not None else None
        if not self.enforce_result_bytes or limit is None:
            return
        cut = cut_result(result, limit, unit="bytes")
        if cut is not result:
            result.content, result.is_error = cut.content, True

    def _approve(self, ctx: RunContext[Any], request: ApprovalRequest) -> Decision:
        return Approve(by=self.name)

    def _problem(self, ctx: RunContext[Any], tool: Tool | None) -> str | None:
        """Say why a tool is not allowed; ``None`` if it is."""
        if tool is None:
            return "it has no policy" if self.require_classification else None
        policy = tool.policy
        if self.require_classification and not policy.classified:
            return "nobody has classified what it does"
        if denied := [effect for effect in policy.side_effects.named if effect in self.deny]:
            return f"tools of this kind are not allowed ({', '.join(denied)})"
        if self.require_background_safe and not policy.access.background_safe:
            return "it is not safe to run while nobody watches"
        if self.require_sandbox and policy.runtime.sandbox == "required" and not _sandboxed(ctx):
            return "it needs a sandbox, and the run has none"
        if self.approved is not None and policy.access.approval_required:
            return (
                None if tool.name in self.approved else "it needs an approval that it does not have"
            )
        return None


def _sandboxed(ctx: RunContext[Any]) -> bool:
    return ctx.workspace is not None and ctx.workspace.sandbox == "required"
