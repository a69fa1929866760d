"""The suite for a chat model behind HTTP, which runs against a scripted server."""

from collections.abc import AsyncGenerator, Callable, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import replace
from typing import Any

import anyio
import pytest

from ...errors import (
    ModelError,
    NetworkError,
    ProviderTimeoutError,
    ServerError,
)
from ...model import (
    ChatModel,
    ModelRequest,
    ModelResponse,
    ModelSettings,
    NamedTool,
    ToolChoice,
)
from .._script import Failure, Hang, Step, call, fail, hang, say, think
from .._scripted_model import ScriptedModel
from . import _sent
from ._chat_model import ChatModelConformance
from ._chat_samples import ALPHABETS, FOREIGN_MARK, TIME, WEATHER, answered
from ._chat_suite import asking, entered, plain_and_streamed
from ._wire import Ending, Reaction, Wire, WireAnswer, WireRequest, serving

_PAGE = WireAnswer(
    chunks=(b"<html><title>Bad gateway</title></html>",), headers={"content-type": "text/html"}
)


class HttpChatModelConformance(ChatModelConformance):
    """Tests that every chat model behind HTTP passes, on a server that the suite runs itself.

    Say how the model is made, and how an answer looks on its wire::

        class TestAcme(HttpChatModelConformance):
            def connect(self, base_url):
                return AcmeModel("acme-1", api_key=self.key, base_url=base_url)

            def encode(self, answer, *, stream):
                if not stream:
                    return WireAnswer.json({"text": answer.text})
                return WireAnswer.events({"delta": piece} for piece in cut(answer.text))

    The server is on loopback. What the model sends is in :attr:`requests`, and is checked after each
    call: every text once and in order, results paired with their calls, settings sent or refused,
    and no secret in it.
    """

    key: str = "sk-conformance-0123456789"
    """The key to make the model with, which it sends in a header; empty where there is none.

    The suite looks for it where it must not be.
    """
    piece_bytes: int | None = None
    """Cut the body of answers into pieces of this size; ``None`` leaves them as they are encoded."""
    _wire: Wire

    def connect(self, base_url: str) -> ChatModel | AbstractAsyncContextManager[ChatModel]:
        """Return a new model that calls this address, which has no path and no slash at its end."""
        raise TypeError(f"`{type(self).__name__}` has no `connect`: say how one is made")

    def encode(self, answer: ModelResponse, *, stream: bool) -> WireAnswer:
        """Return an answer as the provider sends it.

        It holds what a test wants the model to say: the blocks of its message, its finish reason, its
        usage. The text of a stream must come in several pieces: see :func:`cut`.

        Raises:
            NotImplementedError: The wire has no form for it. The test is skipped with what this says.
        """
        raise TypeError(f"`{type(self).__name__}` has no `encode`: say how answers look")

    def encode_error(self, error: ModelError) -> WireAnswer:
        """Return a failure as the provider tells it: a status, headers and a body."""
        headers = {} if error.retry_after is None else {"retry-after": f"{error.retry_after:g}"}
        document = {"error": {"message": error.message, "type": error.kind}}
        return WireAnswer.json(document, status=error.status or 500, headers=headers)

    def is_stream(self, request: WireRequest) -> bool:
        """Whether a request asks for a stream: here, whether its body has ``"stream": true``."""
        return request.document.get("stream") is True

    def sent_ids(self, document: Any) -> tuple[list[str], list[str]] | None:
        """Return the ids of all calls in a body, and those that its results name, in order.

        ``None``, where the wire has no ids, leaves out the check that they pair up.
        """
        return None

    # What the suite does with it

    @pytest.fixture(autouse=True)
    def _without_proxies(self, monkeypatch: pytest.MonkeyPatch) -> None:
        """Keep a proxy of the environment from the calls to loopback."""
        for name in ("NO_PROXY", "no_proxy"):
            monkeypatch.setenv(name, "*")

    @property
    def requests(self) -> list[WireRequest]:
        """What the model has sent in the running test."""
        return self._wire.requests

    @asynccontextmanager
    async def model(self, script: Sequence[Step]) -> AsyncGenerator[ChatModel]:
        """Open a model whose server follows the script."""
        async with self._served(_Server(self, script).react) as model:
            yield model

    @asynccontextmanager
    async def _served(self, react: Callable[[WireRequest], Any]) -> AsyncGenerator[ChatModel]:
        problems: list[Exception] = []

        async def guarded(request: WireRequest) -> Reaction:
            try:
                reaction: Reaction = await react(request)
            except Exception as exc:  # noqa: BLE001 - told where the test can see it
                problems.append(exc)
                reaction = Reaction(answer=WireAnswer.json({}, status=500))
            return reaction

        try:
            async with (
                serving(guarded) as self._wire,
                entered(self.connect(self._wire.url)) as model,
            ):
                yield model
        finally:
            if problems and isinstance(problems[0], NotImplementedError):
                pytest.skip(str(problems[0]))
            if problems:
                raise problems[0]

    def check_sent(self, model: ChatModel, request: ModelRequest) -> None:
        """Check what was sent for a request: nothing lost, doubled, moved, or told to the wrong one."""
        sent = _sent.find(self.requests, request)
        document = sent.document
        _sent.check_private(sent, filter(None, (self.key, FOREIGN_MARK, _sent.REGISTERED)))
        _sent.check_texts(document, request.messages)
        _sent.check_arguments(document, request.messages)
        _sent.check_media(document, request.messages)
        _sent.check_forms(document, request)
        _sent.check_settings(document, request.settings, model.profile)
        ids = self.sent_ids(document)
        if ids is not None:
            _sent.check_ids(*ids, request.messages)

    async def check_closed(self) -> None:
        """Check that the server is writing to nobody."""
        with anyio.move_on_after(self.patience / 2):
            await self._wire.idle.wait()
            return
        raise AssertionError(
            "the connection of a call that was left is still open: the provider goes on writing, and "
            "it is paid for"
        )

    # Tests

    async def test_making_a_model_sends_nothing(self) -> None:
        async with self.opened():
            assert not self.requests, "making a model asks the server: a harness is made at import"

    @plain_and_streamed
    async def test_one_call_is_one_request(self, streamed: bool) -> None:
        async with self.opened(fail(ServerError("busy", status=503))) as model:
            with pytest.raises(ModelError):
                await self.ask(model, asking("Hello."), streamed=streamed)
        assert len(self.requests) == 1, (
            f"one call sent {len(self.requests)} requests: the run retries, by its own policy, and "
            "both together would multiply"
        )

    @plain_and_streamed
    async def test_an_answer_may_be_cut_anywhere(self, streamed: bool) -> None:
        self.piece_bytes = 3  # less than a character, a frame or a line
        text = f"{ALPHABETS['astral']} {ALPHABETS['right to left']}"
        async with self.opened(say(*text), call("get_weather", city=text)) as model:
            first = await self.ask(model, asking("Hello."), streamed=streamed)
            assert first.text == text, "the network cut a character in two, and it was lost"
            self.need(model, "tool_calling")
            request = asking("What is the weather?", tools=[WEATHER])
            second = await self.ask(model, request, streamed=streamed)
        assert [made.arguments for made in second.message.tool_calls] == [{"city": text}]

    @plain_and_streamed
    async def test_ids_go_back_as_they_came(self, streamed: bool) -> None:
        own = "Aa0Bb1Cc2"  # in the form of the strictest providers
        step = call("get_weather", {"city": "Paris"}, id=own)
        async with self.opened(step, say("Mild.")) as model:
            self.need(model, "tool_calling")
            ids = self.sent_ids(await self._continued(model, streamed=streamed))
        if ids is None:
            pytest.skip("the suite has no `sent_ids`")
        assert ids == ([own], [own]), (
            f"the call came with the id `{own}` and went back as {ids}: the provider would not know "
            "its own call again"
        )

    @plain_and_streamed
    async def test_seals_of_reasoning_go_back(self, streamed: bool) -> None:
        seal = "c2VhbC1vZi1yZWFzb25pbmc="
        step = think("The user asks.", signature=seal) + call("get_weather", city="Paris")
        async with self.opened(step, say("Mild.")) as model:
            self.need(model, "tool_calling", "reasoning")
            document = await self._continued(model, streamed=streamed)
            answer = b"".join(self._wire.answers[0].chunks)
        if seal.encode() not in answer:
            pytest.skip("`encode` has no form for the signature of a reasoning block")
        assert seal in _sent.leaves(document), (
            "the signature of the reasoning did not go back: the provider would refuse the history, "
            "or the model think all over again"
        )

    async def _continued(self, model: ChatModel, *, streamed: bool) -> Any:
        """Have a call made, and return the body of the request that gives its result back."""
        asked = "What is the weather in Paris? Use the tool."
        first = await self.ask(model, asking(asked, tools=[WEATHER]), streamed=streamed)
        history = answered(asked, first.message, "18 degrees")
        await self.ask(model, ModelRequest(messages=history, tools=[WEATHER]))
        return self.requests[-1].document

    async def test_every_tool_choice_is_told(self) -> None:
        choices: tuple[ToolChoice, ...] = ("auto", "required", NamedTool("get_weather"), "none")
        async with self.opened(*[call("get_weather", city="Paris")] * 3, say("No.")) as model:
            self.need(model, "tool_calling", "forced_tool_choice")
            for choice in choices:
                request = asking("Hello from Paris!", tools=[WEATHER, TIME], tool_choice=choice)
                await self.ask(model, request)
        bodies = [sent.body for sent in self.requests]
        assert len(set(bodies)) == len(bodies), (
            "two tool choices are sent alike: a call that must or must not be made would be left to "
            "the model"
        )

    async def test_a_stream_without_its_end_is_a_failure(self) -> None:
        words = "The answer to your question is not yet complete, and no more of it comes."
        cut_off = _Server(self, [fail(NetworkError("gone"), after=say(*words))], breaks="stop")
        async with self._served(cut_off.react) as model:
            with pytest.raises(ModelError) as caught:
                await self.items(model, asking("Go on."))
        assert caught.value.retryable, (
            "half an answer is worth another try: the provider was cut off, not the question wrong"
        )

    @plain_and_streamed
    async def test_a_silent_server_runs_into_the_timeout(self, streamed: bool) -> None:
        async with self.opened(hang(after=say("The ", "answer ", "takes ", "long."))) as model:
            request = asking("Take your time.", settings=ModelSettings(timeout=0.2))
            with pytest.raises(ModelError) as caught:
                await self.ask(model, request, streamed=streamed)
            await self.check_closed()
        assert isinstance(caught.value, ProviderTimeoutError), (
            f"a call that took too long became `{type(caught.value).__name__}`"
        )
        assert caught.value.retryable

    @plain_and_streamed
    @pytest.mark.parametrize("status", [200, 502])
    async def test_a_page_is_no_answer(self, status: int, streamed: bool) -> None:
        async def react(_: WireRequest) -> Reaction:
            return Reaction(answer=replace(_PAGE, status=status))

        expected = ServerError if status == 502 else ModelError
        async with self._served(react) as model:
            with pytest.raises(expected):
                await self.ask(model, asking("Hello."), streamed=streamed)

    @plain_and_streamed
    async def test_a_server_that_is_not_there_is_a_network_error(self, streamed: bool) -> None:
        async with self.opened():
            gone = self._wire.url
        made = self.connect(gone)
        async with entered(made) as model:
            with pytest.raises(NetworkError) as caught:
                await self.ask(model, asking("Hello."), streamed=streamed)
        assert caught.value.retryable

    @plain_and_streamed
    @pytest.mark.parametrize("status", [200, 401])
    async def test_the_key_is_shown_nowhere(
        self, status: int, streamed: bool, caplog: pytest.LogCaptureFixture
    ) -> None:
        if not self.key:
            pytest.skip("`key` is empty: there is nothing to hide")
        caplog.set_level("DEBUG")

        async def react(_: WireRequest) -> Reaction:
            said = {"error": {"message": f"the key {self.key} is no good", "code": self.key}}
            return Reaction(answer=WireAnswer.json(said, status=status))

        async with self._served(react) as model:
            with pytest.raises(ModelError) as caught:
                await self.ask(model, asking("Hello."), streamed=streamed)
            sent = self.requests[0]
        assert any(self.key in value for value in sent.headers.values()), (
            "the key is in no header: was the model made with `self.key`?"
        )
        error = caught.value
        shown = {
            "the error": f"{error} {error!r} {error.code} {error.raw!r}",
            "the repr of the model": f"{model!r} {model.profile!r}",
            "the cache identity": str(getattr(model, "cache_identity", "")),
            "the log": caplog.text,
        }
        leaking = [where for where, text in shown.items() if self.key in text]
        assert not leaking, f"the key stands in {leaking}, which people read and systems store"

    async def test_the_cache_identity_tells_endpoints_apart(self) -> None:
        async with (
            entered(self.connect("http://127.0.0.1:9")) as one,
            entered(self.connect("http://127.0.0.1:9")) as same,
            entered(self.connect("http://127.0.0.2:9")) as other,
        ):
            ids = [getattr(model, "cache_identity", None) for model in (one, same, other)]
        if ids[0] is None:
            pytest.skip("the model has no `cache_identity`, so that its answers are not cached")
        assert ids[0] == ids[1], "two models alike differ: nothing would be found in the cache"
        assert ids[0] != ids[2], "two servers are taken for one: a cache would mix their answers"


class _Server:
    """Follows a script: a step for each request."""

    def __init__(
        self, suite: HttpChatModelConformance, script: Sequence[Step], *, breaks: Ending = "break"
    ) -> None:
        self._suite = suite
        self._steps = list(script)
        self._breaks: Ending = breaks
        # Of one model, so that calls without an id are counted through.
        self._replies = ScriptedModel([s for s in script if not isinstance(s, Failure | Hang)])

    async def react(self, request: WireRequest) -> Reaction:
        if not self._steps:
            raise AssertionError(
                "the model sent more requests than it was called: does it retry by itself?"
            )
        step = self._steps.pop(0)
        match step:
            case Hang():
                answer = await self._encoded(ScriptedModel([step.after]), request)
                return Reaction(answer=answer, ending="hang", reached=step.started.set)
            case Failure(error=NetworkError()):
                answer = await self._encoded(ScriptedModel([step.after]), request)
                return Reaction(answer=answer, ending=self._breaks)
            case Failure(error=ModelError() as error):
                return Reaction(answer=self._suite.encode_error(error))
            case _:
                return Reaction(answer=await self._encoded(self._replies, request))

    async def _encoded(self, replies: ScriptedModel, request: WireRequest) -> WireAnswer:
        response = await replies.invoke(ModelRequest(messages=[]))
        answer = self._suite.encode(response, stream=self._suite.is_stream(request))
        size = self._suite.piece_bytes
        if size is None:
            return answer
        body = b"".join(answer.chunks)
        pieces = (body[start : start + size] for start in range(0, len(body), size))
        return replace(answer, chunks=tuple(pieces))
