"""How tools are used with a model that has no place for them in its API: as text, both ways."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Protocol, TypeAlias

from ..message import InvalidArguments, ToolCallBlock, ToolMessage
from ..model import ToolChoice, ToolSchema
from ..text import JsonObject


@dataclass(frozen=True, slots=True, kw_only=True)
class TextCall:
    """A call that a model wrote into its text. It names a tool that was offered."""

    name: str
    arguments: JsonObject = field(default_factory=JsonObject)
    invalid: InvalidArguments | None = None
    """Set when the arguments could not be read; ``arguments`` is then empty."""


ReplyPiece: TypeAlias = str | TextCall
"""A piece of what the reply says, or a call."""


class ReplyReader(Protocol):
    """Reads one reply as it comes, and tells text from calls.

    However the reply is cut into pieces, the texts joined and the calls are the same. What is no
    call is text, unchanged: nothing of a reply gets lost.
    """

    @property
    def notices(self) -> Sequence[str]:
        """What was noticed so far, a sentence each: such as a call of a tool that is not offered."""
        ...

    def feed(self, text: str, /) -> list[ReplyPiece]:
        """Take the next piece of the reply and return what is known to be text or a call.

        What may turn out to be part of a call is held back until that is known.
        """
        ...

    def finish(self) -> list[ReplyPiece]:
        """Return what was held back; the reply has ended."""
        ...


class ToolDialect(Protocol):
    """A way to write tools, calls and results as text. It keeps nothing of a conversation."""

    @property
    def name(self) -> str:
        """What the dialect is called, in the keys of caches too."""
        ...

    def instructions(
        self, tools: Sequence[ToolSchema], choice: ToolChoice, /, *, parallel: bool = True
    ) -> str:
        """Return the text that shows a model its tools and how to call them.

        Args:
            tools: The tools, at least one.
            choice: Whether the model may or must call one; never ``none``.
            parallel: Whether it may make several calls in one reply.
        """
        ...

    def write_calls(self, calls: Sequence[ToolCallBlock], tools: Sequence[ToolSchema], /) -> str:
        """Return earlier calls as the model should have written them.

        A tool of a call may not be among ``tools`` any more.
        """
        ...

    def write_results(self, results: Sequence[ToolMessage], /) -> str:
        """Return the results of one turn, in the order of its calls, as one text.

        Nothing in it may be taken for a call or for the end of the result, whatever tools return.
        """
        ...

    def reader(self, tools: Sequence[ToolSchema], /) -> ReplyReader:
        """Return what reads one reply of a model that was offered these tools."""
        ...
