"""What a running tool sees, and the signals that it can give."""

from collections.abc import Callable, Iterable, Mapping
from functools import partial
from typing import Any, Generic

from pydantic import JsonValue
from typing_extensions import TypeVar

from ..cancel import CancellationToken
from ..context import RunConfig, RunContext
from ..errors import InvalidRequestError
from ..text import clean_json
from ..workspace import WorkspaceDescriptor

DataT = TypeVar("DataT", default=Any)


class ToolError(Exception):
    """Tells the model that the tool could not do it, in words for the model.

    Not a failure of the run: the model gets the text as an error result and goes on.
    """


class InterruptSignal(BaseException):
    """Ends a tool that needs an answer from outside.

    Raised by :meth:`ToolContext.ask`, and by a run inside the tool that waits: that one has no id
    and no payload of its own. Not an ``Exception``, so that a tool's own ``except Exception`` lets
    it pass.
    """

    def __init__(self, interrupt_id: str = "", payload: JsonValue = None) -> None:
        super().__init__(interrupt_id)
        self.interrupt_id = interrupt_id
        self.payload = payload


def without_questions(group: BaseExceptionGroup[BaseException]) -> BaseException:
    """Return what a group stands for that a task group has made of a question in it.

    The first question where it holds nothing else, or else all that is not one.
    """
    asked, others = group.split(InterruptSignal)
    if asked is None or others is not None:
        return others or group
    signal: BaseException = asked
    while isinstance(signal, BaseExceptionGroup):
        signal = signal.exceptions[0]
    return signal


class ToolContext(Generic[DataT]):
    """What a tool may know of the run that calls it: one for each call.

    A tool gets it by declaring a parameter of this type; models never see that parameter.
    """

    __slots__ = (
        "_answers",
        "_asked",
        "_post",
        "_report",
        "_taken",
        "attempt",
        "call_id",
        "nested",
        "run",
        "tool_name",
    )

    def __init__(
        self,
        run: RunContext[DataT],
        *,
        call_id: str,
        tool_name: str,
        answers: Mapping[str, JsonValue] | None = None,
        report: Callable[[str], None] | None = None,
        nested: list[Any] | None = None,
    ) -> None:
        self.run: RunContext[DataT] = run
        self.call_id: str = call_id
        self.tool_name: str = tool_name
        self.attempt: int = 1
        """Counts the tries of this call; above 1 only for tools that may be retried."""
        self.nested: list[Any] = [] if nested is None else nested
        """The runs inside the call, which must outlive it if it waits; kept by the harness."""
        self._taken: tuple[Any, ...] = ()
        self._answers = answers or {}
        self._asked = 0
        self._report = report
        self._post: Callable[[Callable[[], None]], None] | None = None

    @property
    def data(self) -> DataT:
        """The run's dependencies."""
        return self.run.data

    @property
    def state(self) -> Any:
        """The application's own object."""
        return self.run.state

    @property
    def config(self) -> RunConfig:
        """The run's identity and configuration."""
        return self.run.config

    @property
    def run_id(self) -> str:
        """The run's id."""
        return self.run.run_id

    @property
    def thread_id(self) -> str | None:
        """The conversation that the run is part of."""
        return self.run.thread_id

    @property
    def workspace(self) -> WorkspaceDescriptor | None:
        """The files that the run may touch; ``None`` where nobody has said."""
        return self.run.workspace

    @property
    def cancellation(self) -> CancellationToken:
        """Set when the run is asked to stop; a long synchronous tool should look at it."""
        return self.run.cancellation

    def progress(self, message: str) -> None:
        """Report to whoever follows the run; from any thread."""
        if self._report is None:
            return
        if self._post is None:
            self._report(message)
        else:
            self._post(partial(self._report, message))

    def ask(self, payload: JsonValue) -> Any:
        """Return the answer to a question that only somebody outside the run can answer.

        Where there is no answer yet the tool ends here, the run finishes the other calls of the
        turn and ends as ``interrupted``; resumed with the answer, the tool runs again from its
        start and gets it from this call. What a tool does before it asks is therefore done twice.

        Args:
            payload: The question, as JSON.

        Raises:
            InvalidRequestError: The question has no JSON form.
        """
        interrupt_id = f"{self.call_id}.{self._asked}"
        self._asked += 1
        if interrupt_id in self._answers:
            return self._answers[interrupt_id]
        try:
            question = clean_json(payload)
        except (TypeError, ValueError) as exc:
            raise InvalidRequestError(
                f"the question of the tool `{self.tool_name}` is no JSON: {exc}"
            ) from exc
        raise InterruptSignal(interrupt_id, question)

    def restarted(self, attempt: int) -> None:
        """Begin another try of the same call."""
        self.attempt = attempt
        self._asked = 0
        self._taken = ()

    def take_nested(self, name: str, input_hash: str) -> Any:
        """Return what is kept of a run inside the call that the tool now starts again, if anything.

        It is the one with the same input, or else the first one of that agent; each is given once.
        """
        left = [run for run in self.nested if run.name == name and not self._was_taken(run)]
        same = [run for run in left if run.input_hash == input_hash]
        found = next(iter(same or left), None)
        self._taken += () if found is None else (found,)
        return found

    def keep_nested(self, run: Any) -> None:
        """Keep what a run inside the call has come to."""
        self.nested.append(run)
        self._taken += (run,)

    def drop_nested(self, run: Any) -> None:
        """Forget what was kept of a run inside the call, which now goes on."""
        self.nested[:] = [each for each in self.nested if each is not run]

    def answers_to(self, requests: Iterable[Any]) -> dict[str, JsonValue]:
        """Return the answers that the call was given to these requests, by id."""
        given = self._answers
        return {request.id: given[request.id] for request in requests if request.id in given}

    def _was_taken(self, run: Any) -> bool:
        return any(run is each for each in self._taken)

    def enter_thread(self, post: Callable[[Callable[[], None]], None]) -> None:
        """From now on the tool runs in another thread; ``post`` reaches the run's event loop."""
        self._post = post
        self.run.enter_thread(post)
