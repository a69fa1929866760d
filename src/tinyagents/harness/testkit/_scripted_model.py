"""A model that answers from a script."""

from collections.abc import Iterable
from types import TracebackType
from typing import Any, Self, cast

from pydantic import BaseModel

from ..context import RunContext
from ..message import Message
from ..model import ModelProfile, ModelRequest
from ._script import Step
from ._step_model import Cursor, Later, Plan, Prepared, StepModel, prepare


class ScriptExhausted(AssertionError):
    """A scripted model was called more often than its script has steps. Never retried."""


class ScriptedModel(StepModel):
    """A chat model that does what its script says, one step for each call.

    It answers at once and without a turn of the event loop, except where a :func:`delay` says so.
    What it streams is the same message as what it answers in one piece. Ids, usage and the cutting
    of streams depend on the script and the requests alone:

    - Calls without an id are numbered ``call_1``, ``call_2``, … in the order in which they are
      made, in each run anew where each run has the script to itself.
    - Usage that is not given is estimated: 10 input tokens for each message of the request, and
      one output token for each 4 characters.

    Runs that share the model share the script and take its steps in the order in which they ask;
    with :meth:`per_run` each run begins it anew. As a context manager it asserts on leaving that
    the script was used up, unless an error is on its way already.

    Args:
        steps: What to do, call by call; see :data:`Step`.
        profile: What the model claims to do. The default claims everything a chat model can: tool
            calls, streaming, structured output, reasoning, all kinds of input.
        name: The model's name in its profile and answers.
        chunk_size: How many characters a streamed piece has; ``None`` for one piece a part.
        record: Whether to keep a copy of each request.
    """

    def __init__(
        self,
        steps: Iterable[Step],
        *,
        profile: ModelProfile | None = None,
        name: str = "scripted",
        chunk_size: int | None = 4,
        record: bool = True,
    ) -> None:
        given = cast("object", steps)
        if isinstance(given, str | BaseModel) or not isinstance(given, Iterable):
            raise TypeError("a script is a list of steps: ScriptedModel([say('hello')])")
        super().__init__(profile=profile, name=name, chunk_size=chunk_size, record=record)
        self._per_run = False
        self._cursors: dict[str | None, Cursor] = {}
        self._exhausted: ScriptExhausted | None = None
        self._steps = tuple(steps)
        self._script = self._prepare_all()

    @classmethod
    def per_run(
        cls,
        steps: Iterable[Step],
        *,
        profile: ModelProfile | None = None,
        name: str = "scripted",
        chunk_size: int | None = 4,
        record: bool = True,
    ) -> Self:
        """Return a model whose script begins anew with each run, however many run at once.

        Calls outside a run share one pass. A run that is resumed goes on where it was.
        """
        model = cls(steps, profile=profile, name=name, chunk_size=chunk_size, record=record)
        model._per_run = model._shares_errors = True
        return model

    @classmethod
    def replies(cls, *texts: str, name: str = "scripted") -> Self:
        """Return a model that answers with these texts, one a call."""
        return cls(texts, name=name)

    @property
    def remaining(self) -> int:
        """How many steps are left; of a script for each run, in the run that has most left."""
        used = [cursor.position for cursor in self._cursors.values()]
        return len(self._script) - min(used, default=0)

    def assert_done(self) -> None:
        """Assert that the script was used up, by each run that began it, and never overrun.

        Raises:
            AssertionError: Steps are left. Or a call has found none: :class:`ScriptExhausted` is
                raised again, in case that something has swallowed it.
        """
        if self._exhausted is not None:
            raise self._exhausted
        left = self.remaining
        if not left:
            return
        used = len(self._script) - left
        raise AssertionError(
            f"the script of `{self.name}` has {len(self._script)} step(s), and {left} of them "
            f"were not used; the next one is {self._steps[used]!r}"
        )

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        exc_type: type[BaseException] | None,
        exc: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        if exc is None:
            self.assert_done()

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.name!r}, {len(self._steps)} steps, {self.calls} calls)"

    def _next(
        self, request: ModelRequest, ctx: RunContext[Any] | None
    ) -> tuple[Cursor, int, Prepared]:
        run = ctx.run_id if self._per_run and ctx is not None else None
        cursor = self._cursors.get(run)
        if cursor is None:
            cursor = self._cursors[run] = Cursor()
        position = cursor.position
        if position == len(self._script):
            error = ScriptExhausted(_overrun(self.name, position, request, ctx))
            self._exhausted = self._exhausted or error
            raise error
        cursor.position = position + 1
        return cursor, position + 1, self._script[position]

    def _prepare_all(self) -> list[Prepared]:
        script: list[Prepared] = []
        first_id = 1
        for number, step in enumerate(self._steps, 1):
            try:
                prepared = prepare(step, self.name, first_id)
            except TypeError as exc:
                raise TypeError(f"step {number} of the script of `{self.name}`: {exc}") from None
            script.append(prepared)
            while isinstance(prepared, Later):
                prepared = prepared.step
            if isinstance(prepared, Plan):
                first_id += prepared.ids
        return script


def _overrun(name: str, steps: int, request: ModelRequest, ctx: RunContext[Any] | None) -> str:
    asked = f"after {_short(request.messages[-1])}" if request.messages else "with no messages"
    run = f" by the run `{ctx.run_id}`" if ctx is not None else ""
    tools = ", ".join(f"`{tool.name}`" for tool in request.tools) or "none"
    return (
        f"the script of `{name}` has {steps} step(s), all used up, and it was called once more{run} "
        f"{asked} ({len(request.messages)} message(s) in all; tools: {tools})"
    )


def _short(message: Message) -> str:
    text = message.text or ", ".join(block.type for block in message.content)
    return f"the {message.role} message {text if len(text) <= 80 else f'{text[:79]}…'!r}"


ScriptedChatModel = ScriptedModel
"""The same class under a longer name."""
