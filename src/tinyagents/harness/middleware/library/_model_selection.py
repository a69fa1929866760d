"""A choice of tools that a model makes."""

import logging
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

from pydantic import BaseModel, Field

from ...context import RunContext
from ...errors import RunCancelledError
from ...message import Message
from ...model import (
    ChatModel,
    ModelRequest,
    ModelSettings,
    ToolSchema,
)
from ...options import check_above_zero, names_of
from ...structured import OutputSpec
from ...text import error_text
from .._base import Middleware
from .._hiding import hide_tools, known_tools
from ._asking import ask_model

_log = logging.getLogger("tinyagents.middleware")

_MOST_MESSAGES = 6
_MOST_CHARACTERS = 2000
"""How much of each of the last messages the choosing model reads."""
_MOST_DESCRIPTION = 200
"""How many characters of each tool's description it reads."""

_INSTRUCTIONS = (
    "You prepare the work of an assistant. Choose the tools that it may need to do what the user "
    "asks for, at most {most}, the most useful first. Do not do the work yourself."
)


class ChosenTools(BaseModel, frozen=True):
    """The tools that were chosen."""

    tools: list[str] = Field(description="Names of tools, exactly as they are listed.")


@dataclass(frozen=True, slots=True)
class _Chosen:
    """What was chosen for one state of the conversation."""

    asked: str
    offered: tuple[str, ...]
    names: frozenset[str] | None
    """``None`` where choosing failed."""


class ModelToolSelectionMiddleware(Middleware[Any]):
    """Asks a model which tools a request needs, and hides the others; for agents with many tools.

    Hooks: ``before_model``. It changes the tools and the tool choice of a request. Events:
    ``tool.filtered``, ``tool.refused``, and those of what it costs.

    It is asked once for each message of the user and each set of tools, while the run lives. Where
    it fails, or does not answer in time, all tools are offered, and ``tool.selection_failed`` says
    so. What it costs is counted to the run; ``RunLimits`` do not count the call.

    Args:
        model: Who chooses: a small and fast one does. It reads the end of the conversation and the
            name and description of each tool.
        max_tools: How many it may choose. Where there are no more tools than that beside
            ``always_include``, it is not asked and nothing is hidden.
        always_include: Tools that are always offered.
        instructions: What it is told, in place of the words here.
        settings: How it answers.
        timeout: Seconds that it has.

    Raises:
        ConfigurationError: A number is not above 0, or names are given as one text.
    """

    def __init__(
        self,
        model: ChatModel,
        *,
        max_tools: int = 10,
        always_include: Collection[str] = (),
        instructions: str | None = None,
        settings: ModelSettings | None = None,
        timeout: float = 15.0,
    ) -> None:
        check_above_zero(max_tools=max_tools, timeout=timeout)
        self._model = model
        self._max_tools = max_tools
        self._always = names_of("always_include", always_include)
        self._instructions = instructions or _INSTRUCTIONS.format(most=max_tools)
        self._settings = settings or ModelSettings(max_tokens=2000)
        self._timeout = timeout

    async def before_model(self, ctx: RunContext[Any], request: ModelRequest) -> None:
        """Hide the tools that are not chosen."""
        open_tools = [schema for schema in request.tools if schema.name not in self._always]
        asked = _last_question(request.messages)
        if len(open_tools) <= self._max_tools or not asked:
            return
        offered = tuple(schema.name for schema in open_tools)
        chosen: _Chosen | None = ctx.scratch.get(self)
        if chosen is None or (chosen.asked, chosen.offered) != (asked, offered):
            names = await self._choose(ctx, request.messages, open_tools)
            ctx.scratch[self] = chosen = _Chosen(asked, offered, names)
        if chosen.names is None:
            return
        kept = chosen.names | self._always
        hidden = [name for name in known_tools(ctx, request) if name not in kept]
        hide_tools(ctx, request, hidden, by=self.name)

    async def _choose(
        self, ctx: RunContext[Any], messages: Sequence[Message], tools: Sequence[ToolSchema]
    ) -> frozenset[str] | None:
        """Return the names that the model chooses; ``None`` where that fails."""
        try:
            answer = await ask_model(
                ctx,
                self._model,
                _spec(),
                _question(messages, tools),
                instructions=self._instructions,
                settings=self._settings,
                seconds=self._timeout,
            )
        except RunCancelledError:
            raise
        except Exception as error:  # noqa: BLE001 - choosing only saves tokens, and is no reason to fail
            _log.warning("`%s` could not choose tools", self.name, exc_info=ctx.loggable(error))
            ctx.emit(
                "tool.selection_failed",
                by=self.name,
                error=error_text(error),
                error_kind=getattr(error, "kind", type(error).__name__),
            )
            return None
        known = {schema.name for schema in tools}
        names = dict.fromkeys(name for name in answer.tools if name in known)
        return frozenset(list(names)[: self._max_tools])


@cache
def _spec() -> OutputSpec[ChosenTools]:
    return OutputSpec(ChosenTools)


def _last_question(messages: Sequence[Message]) -> str:
    """Return what the user said last."""
    for message in reversed(messages):
        if message.role == "user":
            return message.text
    return ""


def _question(messages: Sequence[Message], tools: Sequence[ToolSchema]) -> str:
    """Return the end of the conversation and the list of tools, in words."""
    said = [
        f"{message.role}: {message.text[:_MOST_CHARACTERS]}"
        for message in messages
        if message.role in ("user", "assistant") and message.text.strip()
    ]
    listed = [
        f"- {tool.name}: {' '.join(tool.description.split())[:_MOST_DESCRIPTION]}" for tool in tools
    ]
    conversation = "\n\n".join(said[-_MOST_MESSAGES:])
    return "\n".join(("The conversation:", conversation, "", "The tools:", *listed))
