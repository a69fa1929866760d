"""What the ways of running an agent take."""

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any, TypeAlias

from typing_extensions import TypedDict

from ..agent_loop import SystemFunction
from ..cancel import CancellationToken
from ..context import RunConfig, RunContext
from ..message import MessageBase, SystemMessage
from ..model import ChatModel
from ..prompt import PromptTemplate
from ..tool import ToolContext, ToolLike

if TYPE_CHECKING:
    from ..stream import StreamMode

AgentInput: TypeAlias = str | MessageBase | Sequence[MessageBase]
"""What a run is given: the user's words, a message, or a whole history.

Written with the base class, which is what type checkers make of a list of several kinds.
"""

ModelLike: TypeAlias = ChatModel | str
"""A model, or a name such as ``openai:gpt-5-mini`` that makes one."""

DEFAULT_MODES: "tuple[StreamMode, ...]" = ("messages", "tools", "final")
"""What a stream holds, and a handle keeps, unless it is told."""


class RunOptions(TypedDict, total=False):
    """What every way of running an agent can be told besides its input."""

    data: Any
    """The run's dependencies, handed to tools and hooks as ``ctx.data``."""
    config: RunConfig | None
    """The run's identity, tags, metadata, and lower limits."""
    context: RunContext[Any] | ToolContext[Any] | None
    """The run that this one is part of, as a sub-agent is; or the tool call, for ``invoke``, which
    then waits with it."""
    model: ModelLike | None
    """Another model for this run: a registered name, a model, or ``provider:model``."""
    tools: Iterable[ToolLike] | None
    """Other tools for this run."""
    cancellation: CancellationToken | None
    """A token that stops the run when it is cancelled."""
    answers: Any
    """Answers to the interrupts of a snapshot: a mapping from their ids, or the one answer."""


SystemPrompt: TypeAlias = str | SystemMessage | PromptTemplate | SystemFunction | None
"""Instructions: text, a message, a template that the run fills, or a function that gives them for
each model call."""
