"""What the tests of a chat model have in common: the model, how it is asked, and when to skip."""

from collections.abc import AsyncGenerator, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from typing import Any, ClassVar, TypeVar, cast

import anyio
import pytest

from ...message import Message, UserMessage, dump_messages
from ...model import (
    ChatModel,
    Modality,
    ModelRequest,
    ModelResponse,
    ModelStreamItem,
    StreamCompleted,
    StreamFailed,
    StreamStarted,
    closing_stream,
    merge_stream,
)
from .._script import Step

T = TypeVar("T")

plain_and_streamed = pytest.mark.parametrize("streamed", [False, True], ids=["plain", "streamed"])
"""Runs a test by ``invoke`` and by ``stream``."""


class ChatModelSuite:
    """The base of all tests of a chat model: what an implementation gives, and what they use."""

    pytestmark: ClassVar[Any] = pytest.mark.anyio

    scripted: bool = True
    """Whether the model does what the script says.

    ``False`` is for a live model, which gets the same prompts: what it answers is then checked for
    its structure, and a test that cannot do without a script is skipped.
    """
    patience: float = 30.0
    """Seconds after which a test that hangs fails."""

    def model(self, script: Sequence[Step]) -> ChatModel | AbstractAsyncContextManager[ChatModel]:
        """Return a new model that does one step of the script for each of its calls.

        If it is an asynchronous context manager too, the test enters it and uses what that gives.
        """
        raise TypeError(f"`{type(self).__name__}` has no `model`: say how one is made")

    def check_sent(self, model: ChatModel, request: ModelRequest) -> None:
        """Check what a call has sent, where that can be seen. Called after each call."""

    async def check_closed(self) -> None:
        """Check that a call that was left has nothing open, where that can be seen."""

    # What the tests use

    @asynccontextmanager
    async def opened(self, *script: Step) -> AsyncGenerator[ChatModel]:
        """Open a model that does these steps. A test that takes too long in there fails."""
        with anyio.fail_after(self.patience):
            async with entered(self.model(script)) as model:
                yield model

    async def ask(
        self, model: ChatModel, request: ModelRequest, *, streamed: bool = False
    ) -> ModelResponse:
        """Ask the model, by the way that is asked for, and check what was sent."""
        before = dump_messages(request.messages)
        if streamed:
            response = merge_stream(await self.items(model, request))
        else:
            response = await model.invoke(request)
        assert dump_messages(request.messages) == before, (
            "the call changed the messages that it was given: the application's own history would "
            "change under its hands"
        )
        self.check_sent(model, request)
        return response

    async def items(self, model: ChatModel, request: ModelRequest) -> list[ModelStreamItem]:
        """Read a stream to its end, and check the order of what came."""
        self.need(model, "streaming")
        items: list[ModelStreamItem] = []
        async with closing_stream(model.stream(request)) as stream:
            async for item in stream:
                items.append(item)
        _check_order(items)
        return items

    def need(self, model: ChatModel, *flags: str) -> None:
        """Skip the test unless the profile of the model declares all of this."""
        for flag in flags:
            declared = getattr(model.profile, flag)
            if declared is not True:
                pytest.skip(f"the profile does not declare `{flag}`: it is {declared}")

    def need_input(self, model: ChatModel, kind: Modality) -> None:
        """Skip the test unless the profile of the model declares this kind of input."""
        if kind not in model.profile.input_modalities:
            pytest.skip(f"the profile does not declare `{kind}` among its `input_modalities`")

    def need_script(self) -> None:
        """Skip the test unless the model does what the script says."""
        if not self.scripted:
            pytest.skip("`scripted` is False, and this needs a model that follows a script")

    def check_text(self, response: ModelResponse, expected: str) -> None:
        """Check the text of an answer, as far as the script decides it."""
        if self.scripted:
            assert response.text == expected, (
                "the text is not what the model said: the user would read something else"
            )
        else:
            assert response.text.strip() or response.message.tool_calls, (
                "the answer has neither text nor a call: the user would see nothing"
            )


@asynccontextmanager
async def entered(made: T | AbstractAsyncContextManager[T]) -> AsyncGenerator[T]:
    """Enter what can be entered, and leave anything else as it is."""
    if isinstance(made, AbstractAsyncContextManager):
        async with cast("AbstractAsyncContextManager[T]", made) as opened:
            yield opened
    else:
        yield made


def asking(*said: str | Message, **options: Any) -> ModelRequest:
    """Return a request of these messages; a string is said by the user."""
    messages = [UserMessage(content=each) if isinstance(each, str) else each for each in said]
    return ModelRequest(messages=messages, **options)


def _check_order(items: Sequence[ModelStreamItem]) -> None:
    assert items, "the stream was empty: whoever reads it would wait for an answer that never comes"
    for number, item in enumerate(items):
        assert not isinstance(item, StreamStarted) or number == 0, (
            "the stream began twice, or after its first piece: a reader would take it for two answers"
        )
        assert not isinstance(item, StreamCompleted | StreamFailed) or number == len(items) - 1, (
            "the stream went on after its end: a reader that stops there would lose the rest"
        )
