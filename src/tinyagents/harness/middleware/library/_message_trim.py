"""Sending a part of the conversation only."""

from collections.abc import Collection, Sequence
from typing import Any, get_args

from ...context import RunContext
from ...message import Message
from ...model import ModelRequest
from ...options import check_choice, check_kind, names_of
from ...summarization import Role, TrimStrategy, trim_messages
from ...token_estimation import TokenCounterLike, TokenEstimator
from .._base import Middleware
from ._shortening import put_shorter


class MessageTrimMiddleware(Middleware[Any]):
    """Sends the part of the conversation that a strategy keeps; the transcript stays whole.

    The latest message is always sent, whatever it takes, with the calls that it is a result of: there
    is nothing to answer without it.

    Hooks: ``before_model``. It changes the messages of the request, and never parts a call and its
    result. Events: ``context.compressed`` where something was left out.

    Args:
        strategy: What to keep, such as ``TrimStrategy.keep_last(20)``.
        start_on: Roles that what is kept may begin with, system messages left out; all where there
            is none.
        end_on: Roles that it may end with; the latest message goes, too, where its role is none of them.
        keep_user_turn: Where the cut falls in the middle of a turn, keep what the user said at its
            beginning, so that the model still knows what it is at.
        counter: Counts tokens: see :class:`~tinyagents.harness.token_estimation.TokenEstimator`.

    Raises:
        ConfigurationError: There is no such role, or the strategy is none.
    """

    def __init__(
        self,
        strategy: TrimStrategy,
        *,
        start_on: Collection[Role] = (),
        end_on: Collection[Role] = (),
        keep_user_turn: bool = True,
        counter: TokenCounterLike | None = None,
    ) -> None:
        check_kind("strategy", strategy, TrimStrategy, like="TrimStrategy.keep_last(20)")
        self._strategy = strategy
        self._start_on = _roles("start_on", start_on)
        self._end_on = _roles("end_on", end_on)
        self._keep_user_turn = keep_user_turn
        self._estimator = TokenEstimator(counter)

    async def before_model(self, ctx: RunContext[Any], request: ModelRequest) -> None:
        """Leave out what the strategy does not keep."""
        if self._strategy.kind == "max_tokens":
            await self._estimator.prepare(request.messages)
        kept = self._kept(request.messages)
        await put_shorter(ctx, request, kept, self._estimator, self.name)

    def _kept(self, messages: Sequence[Message]) -> list[Message]:
        kept = trim_messages(
            messages,
            self._strategy,
            start_on=self._start_on,
            end_on=self._end_on,
            keep_user_turn=self._keep_user_turn,
            estimate=self._estimator.message,
        )
        known = {id(message) for message in kept}
        may_go = self._end_on and any(message.role != "system" for message in kept)
        if may_go or not messages or id(messages[-1]) in known:
            return kept
        latest = trim_messages(
            messages, TrimStrategy.keep_last(1), keep_user_turn=self._keep_user_turn
        )
        known.update(map(id, latest))
        whole = trim_messages(messages, TrimStrategy.keep_last(len(messages)))
        return [message for message in whole if id(message) in known]


def _roles(option: str, given: Collection[Role]) -> frozenset[Role]:
    roles = names_of(option, given)
    for role in roles:
        check_choice(option, role, get_args(Role))
    return roles
