"""Tests of how calls of a chat model fail, and how they are left."""

from collections.abc import Callable, Generator
from contextlib import contextmanager

import anyio
import pytest

from ...errors import (
    AuthenticationError,
    BadRequestError,
    ModelError,
    NetworkError,
    RateLimitError,
    ServerError,
)
from ...model import MessageDelta, closing_stream
from .._script import fail, hang, say
from ._chat_suite import ChatModelSuite, asking, plain_and_streamed

FAILURES: dict[str, Callable[[], ModelError]] = {
    "a bad request": lambda: BadRequestError("`messages` is wrong", status=400),
    "a wrong key": lambda: AuthenticationError("no such key", status=401),
    "no permission": lambda: AuthenticationError("not allowed", status=403),
    "too many requests": lambda: RateLimitError("slow down", status=429, retry_after=7),
    "a failure of the server": lambda: ServerError("something broke", status=500),
    "a bad gateway": lambda: ServerError("no answer from upstream", status=502),
    "an outage": lambda: ServerError("back soon", status=503, retry_after=30),
}
"""Failures as a provider tells them, and what they become."""


@contextmanager
def failing(failure: str) -> Generator[list[ModelError]]:
    """Expect a failure of a call, and say what it would mean if it went by or were of another kind."""
    caught: list[ModelError] = []
    try:
        yield caught
    except ModelError as error:
        caught.append(error)
    except AssertionError:
        raise  # the suite's own
    except Exception as exc:
        raise AssertionError(
            f"{failure} became `{type(exc).__name__}`, which is no `ModelError`: no retry and no "
            "fallback would see it"
        ) from exc
    else:
        pytest.fail(f"{failure} was not raised: the run would go on as if it had an answer")


class FailureBehaviour(ChatModelSuite):
    """A failure says whether to try again, and whoever leaves a call leaves nothing behind."""

    @plain_and_streamed
    @pytest.mark.parametrize("failure", FAILURES)
    async def test_a_failure_has_its_class(self, failure: str, streamed: bool) -> None:
        self.need_script()
        expected = FAILURES[failure]()
        async with self.opened(fail(FAILURES[failure]())) as model:
            with failing(failure) as caught:
                await self.ask(model, asking("Hello."), streamed=streamed)
        error = caught[0]
        assert type(error) is type(expected), (
            f"{failure} (HTTP {expected.status}) became `{type(error).__name__}`: whoever handles "
            f"`{type(expected).__name__}` would miss it"
        )
        assert error.retryable is expected.retryable, (
            f"{failure} has retryable={error.retryable}: the run would "
            + ("give up too early" if expected.retryable else "try again for nothing")
        )
        assert error.status == expected.status, (
            f"{failure} has status={error.status}: whoever reads the error is misled"
        )
        assert error.retry_after == expected.retry_after, (
            "the wait that the provider asked for is not told: the next attempt would fail as well"
        )

    @plain_and_streamed
    async def test_it_works_again_after_a_failure(self, streamed: bool) -> None:
        self.need_script()
        async with self.opened(fail(ServerError("busy", status=503)), say("Back.")) as model:
            with failing("an outage"):
                await self.ask(model, asking("Hello."), streamed=streamed)
            response = await self.ask(model, asking("Hello again."), streamed=streamed)
        assert response.text == "Back.", (
            "the call after a failure is not answered as it should be: one failure would spoil the model"
        )

    @plain_and_streamed
    async def test_a_connection_that_breaks_is_a_failure(self, streamed: bool) -> None:
        self.need_script()
        words = ["The ", "answer ", "is ", "not ", "yet ", "complete."]
        broken = fail(NetworkError("the connection broke"), after=say(*words))
        async with self.opened(broken) as model:
            said = ""
            with failing("a connection that broke") as caught:
                if streamed:
                    self.need(model, "streaming")
                    async with closing_stream(model.stream(asking("Go on."))) as stream:
                        async for item in stream:
                            said += item.text if isinstance(item, MessageDelta) else ""
                else:
                    await model.invoke(asking("Go on."))
        error = caught[0]
        assert isinstance(error, NetworkError), (
            f"a connection that broke became `{type(error).__name__}`"
        )
        assert error.retryable, "a broken connection is worth another try"
        assert "".join(words).startswith(said), "what was streamed before is not what was said"

    @plain_and_streamed
    async def test_cancelling_ends_the_call(self, streamed: bool) -> None:
        self.need_script()
        step = hang(after=say("The ", "answer ", "takes ", "very ", "long."))
        async with self.opened(step) as model:
            if streamed:
                self.need(model, "streaming")
            outcomes: list[str] = []

            async def call() -> None:
                try:
                    await self.ask(model, asking("Take your time."), streamed=streamed)
                    outcomes.append("answered")
                except Exception as exc:  # noqa: BLE001 - a cancellation is none of these
                    outcomes.append(f"raised {exc!r}")

            async with anyio.create_task_group() as group:
                group.start_soon(call)
                await step.started.wait()
                group.cancel_scope.cancel()
            assert not outcomes, (
                f"a call that was cancelled {outcomes[0]}: a run that was stopped would go on"
            )
            await self.check_closed()

    async def test_leaving_a_stream_early_ends_the_call(self) -> None:
        self.need_script()
        words = ["The ", "answer ", "takes ", "very ", "long, ", "and ", "nobody ", "waits."]
        step = hang(after=say(*words))
        async with self.opened(step) as model:
            self.need(model, "streaming")
            async with closing_stream(model.stream(asking("Go on."))) as stream:
                async for _ in stream:
                    break
            await self.check_closed()

    async def test_calls_at_the_same_time_do_not_mix(self) -> None:
        self.need_script()
        answers = [f"Answer number {number} of many." for number in range(8)]
        async with self.opened(*(say(*answer) for answer in answers)) as model:
            streams = model.profile.streaming is True
            found: list[str] = []

            async def one(number: int) -> None:
                request = asking(f"Question {number}?")
                response = await self.ask(model, request, streamed=streams and number % 2 == 0)
                found.append(response.text)

            async with anyio.create_task_group() as group:
                for number in range(len(answers)):
                    group.start_soon(one, number)
        assert sorted(found) == answers, (
            "calls at the same time got pieces of each other's answers: a model is shared by runs"
        )
