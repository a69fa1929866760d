"""Requests that are refused for their shape are sent again in another, on real connections."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import anyio
import anyio.to_thread
import pytest

from tests.harness.providers.server import Reply, Seen, Server, eventually, serve
from tinyagents import AgentHarness, tool
from tinyagents.harness.errors import (
    BadRequestError,
    ContextOverflowError,
    ModelError,
    RateLimitError,
)
from tinyagents.harness.events import ModelAdapted, ModelCompleted
from tinyagents.harness.message import SystemMessage, UserMessage
from tinyagents.harness.model import (
    JsonObjectFormat,
    JsonSchemaFormat,
    ModelRequest,
    ModelResponse,
    ModelSettings,
    NamedTool,
    ReasoningConfig,
    ToolSchema,
    drain,
)
from tinyagents.harness.providers import (
    PROVIDERS,
    RESPONSES_PROVIDERS,
    Adaptation,
    OllamaModel,
    OpenAIChatModel,
    OpenAIResponsesModel,
)
from tinyagents.harness.text import JsonObject
from tinyagents.testkit import assert_event_grammar

Model = OpenAIChatModel | OpenAIResponsesModel | OllamaModel
Body = dict[str, Any]

CITY: JsonObject = {
    "type": "object",
    "properties": {"city": {"type": "string"}},
    "required": ["city"],
    "additionalProperties": False,
}
LOOK = ToolSchema(name="look", description="Looks.", parameters=CITY)
STRICT = ToolSchema(name="look", description="Looks.", parameters=CITY, strict=True)
OTHER = ToolSchema(name="other", description="Something else.", parameters={"type": "object"})
HI = UserMessage(content="hi")

WHOLE_CHAT = Reply.json({"choices": [{"message": {"content": "ok"}, "finish_reason": "stop"}]})
STREAMED_CHAT = Reply.events(
    {"choices": [{"index": 0, "delta": {"content": "ok"}}]},
    {"choices": [{"index": 0, "delta": {}, "finish_reason": "stop"}]},
)
SAID = {"type": "message", "content": [{"type": "output_text", "text": "ok", "annotations": []}]}
ANSWERED = {"id": "r1", "status": "completed", "output": [{"id": "m1", **SAID}]}
WHOLE_RESPONSE = Reply.json(ANSWERED)
STREAMED_RESPONSE = Reply.events({"type": "response.completed", "response": ANSWERED}, done=False)
WHOLE_OLLAMA = Reply.json({"message": {"content": "ok"}, "done": True, "done_reason": "stop"})


def answer(seen: Seen) -> Reply:
    streamed = seen.document.get("stream") is True
    if seen.path.endswith("/api/chat"):
        return WHOLE_OLLAMA
    if seen.path.endswith("/responses"):
        return STREAMED_RESPONSE if streamed else WHOLE_RESPONSE
    return STREAMED_CHAT if streamed else WHOLE_CHAT


def told(message: str, *, status: int = 400, **more: Any) -> Reply:
    """A refusal as OpenAI words it."""
    error = {"message": message, "type": "invalid_request_error", "param": None, "code": None}
    return Reply.json({"error": {**error, **more}}, status=status)


def chat(url: str, **options: Any) -> OpenAIChatModel:
    options = {"provider": "compatible", **options}
    return OpenAIChatModel("m", base_url=f"{url}/v1", api_key="", **options)


def responses(url: str, **options: Any) -> OpenAIResponsesModel:
    options = {"provider": "compatible", **options}
    return OpenAIResponsesModel("m", base_url=f"{url}/v1", api_key="", **options)


def ollama(url: str, **options: Any) -> OllamaModel:
    return OllamaModel("m", base_url=url, **options)


@dataclass(frozen=True, kw_only=True)
class Refused:
    """A shape that a server refuses, how it says so, and what it is sent instead."""

    shape: str
    model: Callable[..., Model] = chat
    request: ModelRequest
    has: Callable[[Body], bool]
    """Whether a body has the shape."""
    refusal: Reply
    instead: Callable[[Body], bool]
    streamed_only: bool = False

    def script(self, seen: Seen) -> Reply:
        return self.refusal if self.has(seen.document) else answer(seen)


def is_named(body: Body) -> bool:
    return isinstance(body.get("tool_choice"), dict)


def is_object(body: Body) -> bool:
    form = body.get("response_format") or body.get("text", {}).get("format") or {}
    return bool(form["type"] == "json_object")


def is_strict(body: Body) -> bool:
    return any(tool.get("function", tool).get("strict") for tool in body.get("tools", ()))


NAMED = ModelRequest([HI], [LOOK, OTHER], tool_choice=NamedTool("look"))
OBJECT = ModelRequest([HI], response_format=JsonObjectFormat())
ANSWER = JsonSchemaFormat(name="answer", schema=CITY)
LIMITED = ModelRequest([HI], settings=ModelSettings(max_tokens=9))
THINKING = ModelRequest([HI], settings=ModelSettings(reasoning=ReasoningConfig(effort="high")))


def only_look(body: Body) -> bool:
    (tool,) = body["tools"]
    return bool(body["tool_choice"] == "required" and tool.get("function", tool)["name"] == "look")


def any_object(body: Body) -> bool:
    form = body.get("response_format") or body["text"]["format"]
    schema = form.get("json_schema", form)["schema"]
    return bool(schema == {"type": "object", "additionalProperties": True})


REFUSED = {
    "LM Studio, a named tool": Refused(
        shape="named_tool_choice",
        request=NAMED,
        has=is_named,
        refusal=Reply.json(
            {"error": "Invalid tool_choice type: 'object'. Supported string values: none, auto"},
            status=400,
        ),
        instead=only_look,
    ),
    "a gateway, a named tool": Refused(
        shape="named_tool_choice",
        model=responses,
        request=NAMED,
        has=is_named,
        refusal=told("a named tool choice is not supported", param="tool_choice"),
        instead=only_look,
    ),
    "a FastAPI server, a named tool": Refused(
        shape="named_tool_choice",
        request=NAMED,
        has=is_named,
        refusal=Reply.json(
            {"detail": [{"loc": ["body", "tool_choice"], "msg": "Input should be a valid string"}]},
            status=422,
        ),
        instead=only_look,
    ),
    "LM Studio, an object": Refused(
        shape="json_object",
        request=OBJECT,
        has=is_object,
        refusal=Reply.json(
            {"error": "'response_format.type' must be 'json_schema' or 'text'"}, status=400
        ),
        instead=any_object,
    ),
    "a gateway, an object": Refused(
        shape="json_object",
        model=responses,
        request=OBJECT,
        has=is_object,
        refusal=told("Unsupported value: 'json_object'", param="text.format.type"),
        instead=any_object,
    ),
    "vLLM, a strict tool": Refused(
        shape="strict_schema",
        request=ModelRequest([HI], [STRICT]),
        has=is_strict,
        refusal=Reply.json(
            {
                "object": "error",
                "message": "[{'type': 'extra_forbidden', 'loc': ('body', 'tools', 0, 'function', "
                "'strict'), 'msg': 'Extra inputs are not permitted', 'input': True}]",
                "type": "BadRequestError",
                "param": None,
                "code": 400,
            },
            status=400,
        ),
        instead=lambda body: not is_strict(body) and bool(body["tools"]),
    ),
    "Mistral, a strict tool": Refused(
        shape="strict_schema",
        request=ModelRequest([HI], [STRICT]),
        has=is_strict,
        refusal=Reply.json(
            {
                "object": "error",
                "message": {
                    "detail": [
                        {
                            "type": "extra_forbidden",
                            "loc": ["body", "tools", 0, "function", "strict"],
                            "msg": "Extra inputs are not permitted",
                        }
                    ]
                },
                "type": "invalid_request_error",
            },
            status=422,
        ),
        instead=lambda body: not is_strict(body) and bool(body["tools"]),
    ),
    "OpenAI, a schema that cannot be strict after all": Refused(
        shape="strict_schema",
        request=ModelRequest([HI], response_format=ANSWER),
        has=lambda body: body["response_format"]["json_schema"].get("strict") is True,
        refusal=told(
            "Invalid schema for response_format 'answer': In context=(), 'pattern' is not permitted",
            param="response_format",
        ),
        instead=lambda body: "strict" not in body["response_format"]["json_schema"],
    ),
    "a Responses gateway, a strict tool": Refused(
        shape="strict_schema",
        model=responses,
        request=ModelRequest([HI], [STRICT]),
        has=is_strict,
        refusal=told("Unknown parameter: 'tools[0].strict'.", param="tools[0].strict"),
        instead=lambda body: not is_strict(body) and bool(body["tools"]),
    ),
    "the ChatGPT backend, a limit": Refused(
        shape="output_limit",
        model=responses,
        request=LIMITED,
        has=lambda body: "max_output_tokens" in body,
        refusal=Reply.json({"detail": "Unsupported parameter: max_output_tokens"}, status=400),
        instead=lambda body: "max_output_tokens" not in body,
    ),
    "Azure, the old name of the limit": Refused(
        shape="max_tokens",
        request=LIMITED,
        has=lambda body: "max_tokens" in body,
        refusal=told(
            "Unsupported parameter: 'max_tokens' is not supported with this model. "
            "Use 'max_completion_tokens' instead.",
            param="max_tokens",
            code="unsupported_parameter",
        ),
        instead=lambda body: body["max_completion_tokens"] == 9,
    ),
    "a gateway, the usage of a stream": Refused(
        shape="stream_options",
        request=ModelRequest([HI]),
        has=lambda body: "stream_options" in body,
        refusal=told("Unknown parameter: 'stream_options'.", param="stream_options"),
        instead=lambda body: body["stream"] is True,
        streamed_only=True,
    ),
    "Gemma, the system role": Refused(
        shape="system_messages",
        request=ModelRequest([SystemMessage(content="Be brief."), HI]),
        has=lambda body: body["messages"][0]["role"] == "system",
        refusal=told("Jinja Exception: System role not supported", status=500),
        instead=lambda body: body["messages"] == [{"role": "user", "content": "Be brief.\n\nhi"}],
    ),
    "Ollama, thinking": Refused(
        shape="thinking",
        model=ollama,
        request=THINKING,
        has=lambda body: "think" in body,
        refusal=Reply.json({"error": '"m" does not support thinking'}, status=400),
        instead=lambda body: "think" not in body,
    ),
}
PLAIN = {name: case for name, case in REFUSED.items() if not case.streamed_only}


async def ask(model: Model, request: ModelRequest, *, stream: bool) -> ModelResponse:
    return await (drain(model.stream(request)) if stream else model.invoke(request))


def bodies(server: Server) -> list[Body]:
    return [seen.document for seen in server.requests]


@pytest.mark.parametrize("stream", [False, True], ids=["plain", "streamed"])
@pytest.mark.parametrize("name", REFUSED)
async def test_a_refused_shape_is_sent_in_another_and_no_more(name: str, stream: bool) -> None:
    case = REFUSED[name]
    if case.streamed_only and not stream:
        return
    async with serve(case.script) as server, case.model(server.url) as model:
        before = model.cache_identity
        first = await ask(model, case.request, stream=stream)
        second = await ask(model, case.request, stream=stream)
    refused, again, later = bodies(server)
    assert case.has(refused)
    assert case.instead(again)
    assert later == again
    (known,) = model.adaptations
    assert known.shape == case.shape
    assert first.text == second.text == "ok"
    assert first.notices == second.notices == (known.notice,)
    assert model.cache_identity != before


@pytest.mark.parametrize("name", PLAIN)
async def test_a_model_that_may_not_adapt_raises_the_refusal(name: str) -> None:
    case = PLAIN[name]
    async with serve(case.script) as server, case.model(server.url, adapt=False) as model:
        with pytest.raises(BadRequestError):
            await model.invoke(case.request)
    assert len(server.requests) == 1
    assert model.adaptations == ()


async def test_a_server_that_has_no_field_for_strict_is_not_told_of_tools_that_are_not() -> None:
    def script(seen: Seen) -> Reply:
        if "strict" in seen.document["tools"][0]:
            return told("Unknown parameter: 'tools[0].strict'.", param="tools[0].strict")
        return answer(seen)

    request = ModelRequest([HI], [replace(LOOK, strict=False)])
    async with serve(script) as server, responses(server.url) as model:
        for _ in range(2):
            assert (await model.invoke(request)).text == "ok"
        assert [one.shape for one in model.adaptations] == ["strict_schema"]
    sent = [body["tools"][0] for body in bodies(server)]
    assert ["strict" in each for each in sent] == [True, False, False]


@pytest.mark.parametrize("stream", [False, True], ids=["plain", "streamed"])
@pytest.mark.parametrize("name", PLAIN)
async def test_a_second_refusal_raises_the_first_and_nothing_is_remembered(
    name: str, stream: bool
) -> None:
    case = PLAIN[name]
    replies = iter([case.refusal, told("no, not like that"), case.refusal, WHOLE_CHAT])
    async with serve(lambda _: next(replies)) as server, case.model(server.url) as model:
        with pytest.raises(BadRequestError) as caught:
            await ask(model, case.request, stream=stream)
        assert model.adaptations == ()
    assert len(server.requests) == 2
    assert caught.value.message != "no, not like that"
    assert isinstance(caught.value.__cause__, BadRequestError)
    assert caught.value.__cause__.message == "no, not like that"


@pytest.mark.parametrize(
    ("failure", "error"),
    [
        (told("slow down", status=429), RateLimitError),
        (told("This model's maximum context length is 9 tokens"), ContextOverflowError),
    ],
)
async def test_another_failure_of_the_second_request_is_told_itself(
    failure: Reply, error: type[ModelError]
) -> None:
    case = REFUSED["LM Studio, a named tool"]
    replies = iter([case.refusal, failure])
    async with serve(lambda _: next(replies)) as server, chat(server.url) as model:
        with pytest.raises(error):
            await model.invoke(case.request)
        assert model.adaptations == ()
    assert len(server.requests) == 2


@pytest.mark.parametrize(
    "refusal",
    [
        told("The model `m` does not exist", status=404),
        told("tool_choice: this is not the reason", status=401),
        told("tool_choice is not supported", param="messages"),
        told("Invalid value for 'content'"),
        told("tool_choice is not supported: maximum context length is 9 tokens"),
        told("Tool choice 'look' not found in 'tools' parameter"),
        told("tool_choice", status=500),
    ],
)
async def test_a_refusal_that_is_about_something_else_is_not_answered(refusal: Reply) -> None:
    async with serve(refusal) as server, chat(server.url) as model:
        with pytest.raises(ModelError):
            await model.invoke(NAMED)
    assert len(server.requests) == 1


@pytest.mark.parametrize("name", PLAIN)
async def test_what_a_request_does_not_have_is_not_what_was_refused(name: str) -> None:
    case = PLAIN[name]
    plain = ModelRequest([HI])
    async with serve(case.refusal) as server, case.model(server.url) as model:
        with pytest.raises(BadRequestError):
            await model.invoke(plain)
    assert len(server.requests) == 1


async def test_a_wrong_limit_is_not_left_out() -> None:
    wrong = told("Invalid 'max_output_tokens': integer below minimum value. Expected >= 16")
    async with serve(wrong) as server, responses(server.url) as model:
        with pytest.raises(BadRequestError):
            await model.invoke(LIMITED)
    assert len(server.requests) == 1


async def test_an_object_that_lacks_its_word_in_the_prompt_is_the_callers_to_mend() -> None:
    wrong = told(
        "'messages' must contain the word 'json' in some form, to use 'response_format' of type "
        "'json_object'.",
        param="messages",
    )
    async with serve(wrong) as server, chat(server.url) as model:
        with pytest.raises(BadRequestError, match="must contain the word"):
            await model.invoke(OBJECT)
    assert len(server.requests) == 1


async def test_several_shapes_are_given_up_one_after_the_other() -> None:
    request = ModelRequest([HI], [STRICT, OTHER], tool_choice=NamedTool("look"))

    def picky(seen: Seen) -> Reply:
        if is_named(seen.document):
            return REFUSED["LM Studio, a named tool"].refusal
        if is_strict(seen.document):
            return REFUSED["vLLM, a strict tool"].refusal
        return WHOLE_CHAT

    async with serve(picky) as server, chat(server.url) as model:
        response = await model.invoke(request)
        await model.invoke(request)
    assert len(server.requests) == 4
    assert [one.shape for one in model.adaptations] == ["named_tool_choice", "strict_schema"]
    assert len(response.notices) == 2


async def test_a_notice_stands_only_where_it_changed_something() -> None:
    case = REFUSED["LM Studio, a named tool"]
    async with serve(case.script) as server, chat(server.url) as model:
        await model.invoke(case.request)
        response = await model.invoke(ModelRequest([HI], [LOOK]))
    assert response.notices == ()


async def test_an_adaptation_tells_what_the_server_said(caplog: pytest.LogCaptureFixture) -> None:
    case = REFUSED["Ollama, thinking"]
    async with serve(case.script) as server, ollama(server.url) as model:
        await model.invoke(case.request)
        await model.invoke(case.request)
    assert model.adaptations == (
        Adaptation(
            shape="thinking",
            notice="thinking was not asked for, since the model does not support it",
            refusal='"m" does not support thinking',
        ),
    )
    (record,) = [one for one in caplog.records if one.name == "tinyagents.providers"]
    assert record.levelname == "WARNING"
    assert server.url in record.getMessage()


async def test_an_option_leaves_the_limit_out_from_the_start() -> None:
    preset = replace(RESPONSES_PROVIDERS["compatible"], output_limit=False)
    async with serve(answer) as server, responses(server.url, provider=preset) as model:
        response = await model.invoke(LIMITED)
    (body,) = bodies(server)
    assert "max_output_tokens" not in body
    assert response.notices == ()


async def test_calls_at_once_are_each_sent_twice_at_most() -> None:
    case = REFUSED["LM Studio, an object"]
    answers: list[str] = []

    async def call(model: Model) -> None:
        answers.append((await model.invoke(case.request)).text)

    async with serve(case.script) as server, chat(server.url) as model:
        async with anyio.create_task_group() as group:
            for _ in range(20):
                group.start_soon(call, model)
        assert len(server.requests) <= 40
        known = len(server.requests)
        await model.invoke(case.request)
    assert answers == ["ok"] * 20
    assert [one.shape for one in model.adaptations] == ["json_object"]
    assert len(server.requests) == known + 1


async def test_threads_share_what_was_found_out(anyio_backend: str) -> None:
    case = REFUSED["LM Studio, an object"]

    async def calls(model: Model) -> None:
        for _ in range(3):
            assert (await model.invoke(case.request)).text == "ok"

    def in_a_loop_of_its_own(model: Model) -> None:
        anyio.run(calls, model, backend=anyio_backend)

    async with (
        serve(case.script) as server,
        chat(server.url) as model,
        anyio.create_task_group() as group,
    ):
        for _ in range(4):
            group.start_soon(anyio.to_thread.run_sync, in_a_loop_of_its_own, model)
    assert [one.shape for one in model.adaptations] == ["json_object"]
    assert 13 <= len(server.requests) <= 16


@pytest.mark.parametrize("stream", [False, True], ids=["plain", "streamed"])
async def test_cancelling_the_second_request_leaves_nothing_open(stream: bool) -> None:
    case = REFUSED["LM Studio, an object"]
    silent = Reply(pieces=(b" ",), then="hang")
    replies = iter([case.refusal, silent])
    async with serve(lambda _: next(replies)) as server, chat(server.url) as model:
        async with anyio.create_task_group() as group:
            group.start_soon(lambda: ask(model, case.request, stream=stream))
            await eventually(lambda: len(server.requests) == 2)
            group.cancel_scope.cancel()
        await eventually(lambda: bool(server.gone))
        assert model.adaptations == ()


async def test_a_stream_that_refuses_in_its_first_event_is_answered_too() -> None:
    case = REFUSED["LM Studio, a named tool"]
    refused = Reply.events(
        {"error": {"message": "tool_choice must be a string", "code": 400}}, done=False, then="hang"
    )

    def script(seen: Seen) -> Reply:
        return refused if is_named(seen.document) else answer(seen)

    async with serve(script) as server, chat(server.url) as model:
        response = await drain(model.stream(case.request))
        await eventually(lambda: bool(server.gone))
    assert response.text == "ok"
    assert len(server.requests) == 2


async def test_a_run_counts_one_call_and_announces_the_change_and_no_retry() -> None:
    usage = {"prompt_tokens": 5, "completion_tokens": 2, "total_tokens": 7}
    call = {"id": "c1", "function": {"name": "look", "arguments": "{}"}}
    asking = {"message": {"tool_calls": [call]}, "finish_reason": "tool_calls"}
    done = {"message": {"content": "a cat"}, "finish_reason": "stop"}
    refused = Reply.json({"error": "`strict` is not supported"}, status=400)
    replies = iter(
        [
            refused,
            Reply.json({"choices": [asking], "usage": usage}),
            Reply.json({"choices": [done], "usage": usage}),
        ]
    )

    @tool(strict=True)
    def look() -> str:
        """Look."""
        return "a cat"

    async with serve(lambda _: next(replies)) as server, chat(server.url) as model:
        harness = AgentHarness(model=model, tools=[look])
        run = await harness.invoke(None, "What is there?")
    assert run.text == "a cat"
    assert len(server.requests) == 3
    assert (run.model_calls, run.usage.total_tokens) == (2, 14)
    completed = [event for event in run.events if isinstance(event, ModelCompleted)]
    assert [event.attempts for event in completed] == [1, 1]
    told = [event for event in run.events if isinstance(event, ModelAdapted)]
    assert [event.notices for event in told] == [
        tuple(one.notice for one in model.adaptations),
        tuple(one.notice for one in model.adaptations),
    ]
    assert "retry.scheduled" not in {event.kind for event in run.events}
    assert_event_grammar(run.events)


# Servers that only stream

ONLY_STREAMS = {
    "DashScope": told(
        "This model only support stream mode, please enable the stream parameter to access the "
        "model. ",
        code="invalid_parameter_error",
    ),
    "the ChatGPT backend": Reply.json({"detail": "Stream must be set to true"}, status=400),
    "a gateway": told("Streaming is required for this model", status=422, param="stream"),
}


def streams_only(refusal: Reply) -> Callable[[Seen], Reply]:
    return lambda seen: answer(seen) if seen.document.get("stream") else refusal


@pytest.mark.parametrize("make", [chat, responses], ids=["chat", "responses"])
@pytest.mark.parametrize("name", ONLY_STREAMS)
async def test_a_plain_call_is_read_as_a_stream_where_it_must_be(
    name: str, make: Callable[..., Model]
) -> None:
    async with serve(streams_only(ONLY_STREAMS[name])) as server, make(server.url) as model:
        first = await model.invoke(ModelRequest([HI]))
        second = await model.invoke(ModelRequest([HI]))
        streamed = await drain(model.stream(ModelRequest([HI])))
    assert [body.get("stream", False) for body in bodies(server)] == [False, True, True, True]
    (known,) = model.adaptations
    assert known.shape == "plain_call"
    assert first.text == second.text == "ok"
    assert first.notices == second.notices == (known.notice,)
    assert streamed.notices == ()


async def test_what_one_model_found_out_of_a_server_spares_the_others() -> None:
    script = streams_only(ONLY_STREAMS["DashScope"])
    async with serve(script) as server, chat(server.url) as one, chat(server.url) as another:
        fresh = another.cache_identity
        await one.invoke(ModelRequest([HI]))
        assert another.cache_identity != fresh
        response = await another.invoke(ModelRequest([HI]))
    assert [body.get("stream", False) for body in bodies(server)] == [False, True, True]
    assert response.notices == tuple(known.notice for known in another.adaptations)
    assert response.notices


async def test_a_preset_that_opts_out_keeps_to_plain_calls() -> None:
    script = streams_only(ONLY_STREAMS["DashScope"])
    never = replace(PROVIDERS["compatible"], require_streaming=False)
    async with serve(script) as server, chat(server.url) as one:
        await one.invoke(ModelRequest([HI]))
        for options in ({"provider": never}, {"adapt": False}):
            async with chat(server.url, **options) as another:
                with pytest.raises(BadRequestError):
                    await another.invoke(ModelRequest([HI]))
                assert another.adaptations == ()
    assert [body.get("stream", False) for body in bodies(server)] == [False, True, False, False]


async def test_a_plain_call_that_must_stream_gives_up_other_shapes_too() -> None:
    def backend(seen: Seen) -> Reply:
        if not seen.document.get("stream"):
            return ONLY_STREAMS["the ChatGPT backend"]
        if "max_output_tokens" in seen.document:
            return REFUSED["the ChatGPT backend, a limit"].refusal
        return answer(seen)

    async with serve(backend) as server, responses(server.url) as model:
        response = await model.invoke(LIMITED)
    assert response.text == "ok"
    assert [one.shape for one in model.adaptations] == ["plain_call", "output_limit"]
    assert len(response.notices) == 2
    assert len(server.requests) == 3
