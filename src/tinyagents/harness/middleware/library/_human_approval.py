"""Tool calls that run only when a person agrees."""

import inspect
from collections.abc import Awaitable, Callable, Collection
from functools import partial
from typing import Any, TypeAlias

from ...approval import ALL_DECISIONS, ApprovalNeed, Approver, DecisionKind
from ...context import RunContext
from ...errors import ConfigurationError
from .._base import Middleware, ToolCall

Concerns: TypeAlias = Callable[[RunContext[Any], ToolCall], bool | Awaitable[bool]]
"""Whether a call needs approval."""


class HumanApprovalMiddleware(Middleware[Any]):
    """Lets calls run only when somebody agrees.

    Hooks: ``before_tool``. It changes nothing, and judges the tool that will really run and the
    arguments that it will really run with: after the hooks before a tool, the policy for unknown
    tools, and the check of the arguments. Events: ``tool.approval``. What ``when`` raises ends the
    run.

    Args:
        names: The tools whose calls need approval.
        when: Which calls need it, among those of ``names`` where both are given. With neither,
            the calls of tools whose policy has ``access.approval_required``.
        approver: Decides in place, while the other calls of the turn run: gets the run's context
            and the request, and returns a decision, or ``None`` to leave it to somebody outside.
            Where it raises, or returns anything else, the call is denied. Without one the run ends
            ``interrupted``, and is resumed with the decision.
        reason: Why, for whoever decides.
        expires_in: Seconds from a request until it lapses.
        allow: The decisions that are taken; a rejection always is.
        may_remember: Whether an approval may stand for later calls of the run.

    Raises:
        ConfigurationError: There is no such decision, the time is not above 0, or ``names`` is
            one text.
    """

    def __init__(
        self,
        *,
        names: Collection[str] | None = None,
        when: Concerns | None = None,
        approver: Approver | None = None,
        reason: str | None = None,
        expires_in: float | None = None,
        allow: Collection[DecisionKind] = ALL_DECISIONS,
        may_remember: bool = True,
    ) -> None:
        if isinstance(names, str):
            raise ConfigurationError(f"`names` is a collection of names: pass [{names!r}]")
        self._names = None if names is None else frozenset(names)
        self._when = when
        # Checked here and made anew for each call, with what it asks of that one.
        self._need = ApprovalNeed(
            reason=reason,
            approver=approver,
            expires_in=expires_in,
            allow=tuple(allow),
            may_remember=may_remember,
        )

    async def before_tool(self, ctx: RunContext[Any], call: ToolCall) -> None:
        """Ask for approval of the call, should it turn out to need one."""
        need = self._need
        call.require_approval(
            need.reason,
            when=partial(self._concerns, ctx, call),
            approver=need.approver,
            expires_in=need.expires_in,
            allow=need.allow,
            may_remember=need.may_remember,
        )

    async def _concerns(self, ctx: RunContext[Any], call: ToolCall) -> bool:
        if self._names is None and self._when is None:
            return call.tool is not None and call.tool.policy.access.approval_required
        if self._names is not None and call.name not in self._names:
            return False
        holds = True if self._when is None else self._when(ctx, call)
        return await holds if inspect.isawaitable(holds) else holds
