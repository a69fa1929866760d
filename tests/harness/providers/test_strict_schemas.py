"""Schemas that a provider is to hold an answer to: strict where they can be, else told why not."""

from collections.abc import Callable
from typing import Any

import httpx
import orjson
import pytest
from pydantic import BaseModel, Field

from tinyagents import AgentHarness
from tinyagents.harness.errors import InvalidRequestError
from tinyagents.harness.events import ModelAdapted
from tinyagents.harness.message import UserMessage
from tinyagents.harness.model import (
    ChatModel,
    JsonSchemaFormat,
    ModelRequest,
    ModelResponse,
    ModelSettings,
    ReasoningConfig,
    ReasoningEffort,
    ToolSchema,
    drain,
)
from tinyagents.harness.providers import (
    AnthropicModel,
    GeminiModel,
    OllamaModel,
    OpenAIChatModel,
    OpenAIResponsesModel,
)
from tinyagents.harness.structured import OutputSpec

Json = dict[str, Any]
KEY = "the-key-of-a-test"
HI = UserMessage(content="hi")


class Node(BaseModel, extra="allow"):
    """Contains itself, takes properties of any name, and holds a map."""

    kids: list["Node"]
    tags: dict[str, int]


class Tree(BaseModel):
    """Contains itself, and is closed."""

    name: str
    kids: list["Tree"]


class Cat(BaseModel):
    lives: int = Field(description="How many.")


class Dog(BaseModel):
    tricks: list[str]


class Owner(BaseModel):
    pet: Cat | Dog
    other: Cat = Field(description="The second one.")


def chat(text: str) -> Json:
    return {"choices": [{"message": {"content": text}, "finish_reason": "stop"}]}


def responses(text: str) -> Json:
    content = [{"type": "output_text", "text": text, "annotations": []}]
    message = {"type": "message", "role": "assistant", "content": content}
    return {"id": "r", "status": "completed", "output": [message]}


def messages(text: str) -> Json:
    content = [{"type": "text", "text": text}]
    return {"role": "assistant", "content": content, "stop_reason": "end_turn"}


def generated(text: str) -> Json:
    return {"candidates": [{"content": {"parts": [{"text": text}]}, "finishReason": "STOP"}]}


class Wire:
    """A provider that gives these answers, and keeps what it was sent."""

    def __init__(self, answer: Callable[[str], Json], *texts: str) -> None:
        self._answers = [answer(text) for text in texts or ("{}",)]
        self.bodies: list[Json] = []

    def client(self) -> httpx.AsyncClient:
        return httpx.AsyncClient(transport=httpx.MockTransport(self._reply))

    def _reply(self, request: httpx.Request) -> httpx.Response:
        self.bodies.append(orjson.loads(request.content))
        left = self._answers
        return httpx.Response(200, json=left.pop(0) if len(left) > 1 else left[0])


async def answered(
    make: Callable[[httpx.AsyncClient], ChatModel], wire: Wire, **request: Any
) -> tuple[ModelResponse, Json]:
    async with wire.client() as client:
        response = await make(client).invoke(ModelRequest([HI], **request))
    return response, wire.bodies[-1]


def openai(client: httpx.AsyncClient) -> OpenAIChatModel:
    return OpenAIChatModel("gpt-4o", api_key=KEY, http_client=client)


def openai_responses(client: httpx.AsyncClient) -> OpenAIResponsesModel:
    return OpenAIResponsesModel("gpt-4o", api_key=KEY, http_client=client)


def claude(client: httpx.AsyncClient) -> AnthropicModel:
    return AnthropicModel("claude-sonnet-4-5", api_key=KEY, http_client=client)


def gemini(client: httpx.AsyncClient) -> GeminiModel:
    return GeminiModel("gemini-3-pro", api_key=KEY, http_client=client)


ADAPTERS = [
    pytest.param(openai, chat, id="chat"),
    pytest.param(openai_responses, responses, id="responses"),
    pytest.param(claude, messages, id="anthropic"),
    pytest.param(gemini, generated, id="gemini"),
]
OPENAI = ADAPTERS[:2]


def form_of(body: Json) -> Json:
    """The form of the answer in a body of either of OpenAI's APIs."""
    format_ = body.get("response_format", {}).get("json_schema") or body["text"]["format"]
    return {name: value for name, value in format_.items() if name != "type"}


def tool_of(body: Json) -> Json:
    """The only tool in a body of either of OpenAI's APIs."""
    (tool,) = body["tools"]
    found: Json = tool.get("function", tool)
    return found


def tool(output: Any, **options: Any) -> ToolSchema:
    return ToolSchema(name="f", description="", parameters=OutputSpec(output).schema, **options)


# C43


@pytest.mark.parametrize(("make", "answer"), ADAPTERS)
async def test_a_type_that_strict_mode_refuses_is_caught_locally_on_every_adapter(
    make: Callable[[httpx.AsyncClient], ChatModel], answer: Callable[[str], Json]
) -> None:
    good = '{"kids":[{"kids":[],"tags":{}}],"tags":{"a":1},"more":true}'
    wire = Wire(answer, '{"kids":[],"tags":{"a":"x"}}', good)
    async with wire.client() as client:
        run = await AgentHarness(model=make(client)).invoke(None, "go", output=Node)
    assert run.output.kids[0].tags == {}
    assert len(wire.bodies) == 2
    if make is not gemini:  # which takes maps as they are
        told = [event.notices for event in run.events if isinstance(event, ModelAdapted)]
        assert told


@pytest.mark.parametrize(("make", "answer"), OPENAI)
async def test_a_format_that_cannot_be_strict_is_relaxed_with_the_path(
    make: Callable[[httpx.AsyncClient], ChatModel], answer: Callable[[str], Json]
) -> None:
    response, body = await answered(
        make, Wire(answer), response_format=OutputSpec(Node).response_format()
    )
    form = form_of(body)
    assert form["strict"] is False
    assert any("`$.tags` takes properties of any name" in notice for notice in response.notices)
    assert any("`$` takes properties of any name" in notice for notice in response.notices)
    assert "$ref" in str(form["schema"])


@pytest.mark.parametrize(("make", "answer"), OPENAI)
async def test_a_schema_that_contains_itself_stays_strict_with_its_references(
    make: Callable[[httpx.AsyncClient], ChatModel], answer: Callable[[str], Json]
) -> None:
    response, body = await answered(
        make, Wire(answer), response_format=OutputSpec(Tree).response_format()
    )
    form = form_of(body)
    assert form["strict"] is True
    assert response.notices == ()
    assert form["schema"]["type"] == "object"  # a reference at the top is refused
    assert form["schema"]["properties"]["kids"]["items"] == {"$ref": "#/$defs/Tree"}
    assert form["schema"]["$defs"]["Tree"]["additionalProperties"] is False


@pytest.mark.parametrize(("make", "answer"), OPENAI)
async def test_unions_and_described_references_take_the_form_that_strict_mode_has(
    make: Callable[[httpx.AsyncClient], ChatModel], answer: Callable[[str], Json]
) -> None:
    wanted = OutputSpec(Owner).response_format()
    union = wanted.schema["properties"]["pet"]  # type: ignore[index,call-overload]
    assert isinstance(union, dict)
    union["oneOf"] = union.pop("anyOf")
    _, body = await answered(make, Wire(answer), response_format=wanted)
    form = form_of(body)
    assert form["strict"] is True
    properties = form["schema"]["properties"]
    assert [*properties["pet"]].count("anyOf") == 1
    assert "oneOf" not in properties["pet"]
    assert properties["other"] == {
        "description": "The second one.",
        "anyOf": [{"$ref": "#/$defs/Cat"}],
    }


@pytest.mark.parametrize(
    ("schema", "words"),
    [
        ({"allOf": [{"type": "string"}]}, "`$.x` has `allOf`"),
        ({"type": "array", "uniqueItems": True, "items": {}}, "`$.x` has `uniqueItems`"),
        ({"type": "array", "items": {"not": {}}}, "`$.x[]` has `not`"),
        ({"type": "string", "format": "uri"}, "`$.x` has the format `uri`"),
        ({"type": "object", "patternProperties": {}}, "`$.x` has `patternProperties`"),
        ({"description": "Whatever."}, "`$.x` takes values of any type"),
        ({"type": "array", "items": {}}, "`$.x[]` takes values of any type"),
    ],
)
@pytest.mark.parametrize(("make", "answer"), OPENAI)
async def test_keywords_that_strict_mode_has_no_place_for_are_named(
    make: Callable[[httpx.AsyncClient], ChatModel],
    answer: Callable[[str], Json],
    schema: Json,
    words: str,
) -> None:
    whole: Json = {"type": "object", "properties": {"x": schema}, "required": ["x"]}
    response, body = await answered(
        make, Wire(answer), response_format=JsonSchemaFormat(name="r", schema=whole)
    )
    assert form_of(body)["strict"] is False
    assert form_of(body)["schema"] == whole
    assert any(words in notice for notice in response.notices)
    with pytest.raises(InvalidRequestError, match="a strict schema `r`"):
        await answered(
            make,
            Wire(answer),
            response_format=JsonSchemaFormat(name="r", schema=whole, strict=True),
        )


NO_OBJECTS: list[Json] = [
    {"type": "array", "items": {"type": "integer"}},
    {"anyOf": [{"type": "object", "properties": {}, "additionalProperties": False}]},
]
PRICE: Json = {
    "type": "object",
    "properties": {
        "price": {"type": "string", "pattern": r"^(?!-)\d+$", "description": "In euros."},
        "code": {"type": "string", "pattern": "^[A-Z]+$"},
    },
    "required": ["price", "code"],
}


@pytest.mark.parametrize(("make", "answer"), ADAPTERS[:3])
@pytest.mark.parametrize("strict", [None, True])
async def test_a_pattern_that_no_grammar_can_hold_is_told_in_words(
    make: Callable[[httpx.AsyncClient], ChatModel],
    answer: Callable[[str], Json],
    strict: bool | None,
) -> None:
    wanted = JsonSchemaFormat(name="r", schema=PRICE, strict=strict)
    response, body = await answered(make, Wire(answer), response_format=wanted)
    if make is claude:
        schema = body["output_config"]["format"]["schema"]
    else:
        schema = form_of(body)["schema"]
        assert form_of(body)["strict"] is True
    assert schema["properties"] == {
        "price": {"type": "string", "description": r"In euros. (pattern: ^(?!-)\d+$)"},
        "code": {"type": "string", "pattern": "^[A-Z]+$"},
    }
    assert response.notices == ()


@pytest.mark.parametrize(("make", "answer"), ADAPTERS[:3])
async def test_values_that_are_listed_without_a_type_get_theirs(
    make: Callable[[httpx.AsyncClient], ChatModel], answer: Callable[[str], Json]
) -> None:
    properties: Json = {
        "mixed": {"enum": ["a", 1, True, None], "title": "Mixed"},
        "same": {"enum": ["a", "b"]},
        "only": {"const": "x"},
    }
    schema: Json = {"type": "object", "properties": properties, "required": [*properties]}
    strict = ToolSchema(name="f", description="", parameters=schema, strict=True)
    _, body = await answered(make, Wire(answer), tools=[strict])
    sent = tool_of(body)
    assert sent["strict"] is True
    assert (sent.get("parameters") or sent["input_schema"])["properties"] == {
        "mixed": {
            "title": "Mixed",
            "anyOf": [
                {"type": "string", "enum": ["a"]},
                {"type": "integer", "enum": [1]},
                {"type": "boolean", "enum": [True]},
                {"type": "null", "enum": [None]},
            ],
        },
        "same": {"type": "string", "enum": ["a", "b"]},
        "only": {"type": "string", "const": "x"},
    }


@pytest.mark.parametrize(("make", "answer"), OPENAI)
@pytest.mark.parametrize("schema", NO_OBJECTS)
async def test_what_is_no_object_at_the_top_is_not_strict(
    make: Callable[[httpx.AsyncClient], ChatModel], answer: Callable[[str], Json], schema: Json
) -> None:
    wanted = JsonSchemaFormat(name="r", schema=schema)
    response, body = await answered(make, Wire(answer), response_format=wanted)
    assert form_of(body)["strict"] is False
    assert any("`$` is no object" in notice for notice in response.notices)


async def test_anthropic_is_told_in_words_of_formats_that_it_does_not_know() -> None:
    properties: Json = {
        "path": {"type": "string", "format": "path"},
        "secret": {"type": "string", "format": "password", "writeOnly": True},
        "when": {"type": "string", "format": "date-time"},
    }
    schema: Json = {"type": "object", "properties": properties, "required": [*properties]}
    wanted = JsonSchemaFormat(name="r", schema=schema)
    _, body = await answered(claude, Wire(messages), response_format=wanted)
    assert body["output_config"]["format"]["schema"]["properties"] == {
        "path": {"type": "string", "description": "format: path"},
        "secret": {"type": "string", "description": "format: password"},
        "when": {"type": "string", "format": "date-time"},
    }


@pytest.mark.parametrize(("make", "answer"), OPENAI)
async def test_a_tool_is_strict_unasked_where_its_schema_can_be(
    make: Callable[[httpx.AsyncClient], ChatModel], answer: Callable[[str], Json]
) -> None:
    response, body = await answered(make, Wire(answer), tools=[tool(Cat)])
    assert tool_of(body)["strict"] is True
    assert response.notices == ()
    response, body = await answered(make, Wire(answer), tools=[tool(Node)])
    assert not tool_of(body).get("strict")
    assert any(n.startswith("tool `f` is not strict: `$.tags`") for n in response.notices)
    optional: Json = {"type": "object", "properties": {"a": {"type": "string"}}}
    loose = ToolSchema(name="f", description="", parameters=optional)
    response, body = await answered(make, Wire(answer), tools=[loose])
    assert not tool_of(body).get("strict")
    assert response.notices == ()  # arguments that may be left out are common


async def test_tools_of_other_servers_are_strict_only_when_asked() -> None:
    def groq(client: httpx.AsyncClient) -> OpenAIChatModel:
        return OpenAIChatModel("m", provider="groq", api_key=KEY, http_client=client)

    _, body = await answered(groq, Wire(chat), tools=[tool(Cat)])
    assert "strict" not in tool_of(body)
    _, body = await answered(groq, Wire(chat), tools=[tool(Cat, strict=True)])
    assert tool_of(body)["strict"] is True


def vllm(client: httpx.AsyncClient) -> OpenAIChatModel:
    return OpenAIChatModel("m", provider="vllm", http_client=client)


def ollama(client: httpx.AsyncClient) -> OllamaModel:
    return OllamaModel("m", http_client=client)


def lines(text: str) -> Json:
    message = {"role": "assistant", "content": text}
    return {"message": message, "done": True, "done_reason": "stop"}


@pytest.mark.parametrize(("make", "answer"), [(vllm, chat), (ollama, lines)])
async def test_a_strict_tool_at_a_server_without_them_is_told_of(
    make: Callable[[httpx.AsyncClient], ChatModel], answer: Callable[[str], Json]
) -> None:
    response, body = await answered(make, Wire(answer), tools=[tool(Cat, strict=True)])
    assert "strict" not in tool_of(body)
    assert response.notices == ("tool `f` is not strict: the server takes no `strict`",)
    response, _ = await answered(make, Wire(answer), tools=[tool(Cat)])
    assert response.notices == ()


class Deck(BaseModel):
    """Has limits that the Messages API does not hold an answer to."""

    name: str = Field(min_length=2)
    cards: list[Cat] = Field(min_length=3)
    pet: Cat


async def test_anthropic_tells_which_limits_are_only_described() -> None:
    limits = ("`$.name`: `minLength` is only described", "`$.cards`: `minItems` is only described")
    wanted = OutputSpec(Deck).response_format()
    response, body = await answered(claude, Wire(messages), response_format=wanted)
    schema = body["output_config"]["format"]["schema"]
    assert "minLength" not in schema["properties"]["name"]
    assert schema["properties"]["name"]["description"] == "minLength: 2"
    assert "system" not in body
    assert response.notices == tuple(f"format `{wanted.name}`: {each}" for each in limits)
    response, body = await answered(claude, Wire(messages), tools=[tool(Deck, strict=True)])
    assert body["tools"][0]["strict"] is True
    assert response.notices == tuple(f"tool `f`: {each}" for each in limits)
    response, body = await answered(claude, Wire(messages), tools=[tool(Deck)])
    assert "strict" not in body["tools"][0]
    assert response.notices == ()  # sent as it is


async def test_an_effort_at_a_provider_that_only_switches_thinking_is_told_of() -> None:
    def deepseek(client: httpx.AsyncClient) -> OpenAIChatModel:
        return OpenAIChatModel("m", provider="deepseek", api_key=KEY, http_client=client)

    async def asked(effort: ReasoningEffort, **options: Any) -> tuple[tuple[str, ...], Json]:
        settings = ModelSettings(reasoning=ReasoningConfig(effort=effort), provider_options=options)
        response, body = await answered(deepseek, Wire(chat), settings=settings)
        return response.notices, body["thinking"]

    told = "the effort `high` was sent as thinking that is on: the provider knows none"
    assert await asked("high") == ((told,), {"type": "enabled"})
    assert await asked("none") == ((), {"type": "disabled"})
    assert await asked("high", thinking={"type": "disabled"}) == ((), {"type": "disabled"})


async def test_a_temperature_beside_thinking_is_left_out_and_said() -> None:
    reasoning = ReasoningConfig(budget_tokens=2_000)
    response, body = await answered(
        claude, Wire(messages), settings=ModelSettings(temperature=0.5, reasoning=reasoning)
    )
    assert "temperature" not in body
    assert response.notices == (
        "a temperature was left out: the model takes none while it thinks (`reasoning`)",
    )
    response, _ = await answered(
        claude, Wire(messages), settings=ModelSettings(reasoning=reasoning)
    )
    assert response.notices == ()


async def test_anthropic_is_told_in_words_of_a_schema_that_it_cannot_hold() -> None:
    response, body = await answered(
        claude, Wire(messages), response_format=OutputSpec(Tree).response_format()
    )
    assert "output_config" not in body
    assert "fits this JSON Schema" in body["system"][0]["text"]
    assert any(
        "contains itself" in notice and "`$.kids[]`" in notice for notice in response.notices
    )
    assert any("`$.$defs.Tree.kids[]`" in notice for notice in response.notices)
    _, body = await answered(
        claude, Wire(messages), response_format=OutputSpec(Cat).response_format()
    )
    assert body["output_config"]["format"]["schema"]["additionalProperties"] is False
    assert "system" not in body


async def test_what_must_be_strict_is_refused_with_the_path() -> None:
    for make, answer in ((openai, chat), (claude, messages)):
        strict = tool(Node, strict=True)
        with pytest.raises(InvalidRequestError, match=r"strict arguments for `f`: .*`\$\.tags`"):
            await answered(make, Wire(answer), tools=[strict])


async def test_what_was_left_out_of_the_settings_is_told_in_a_stream_too() -> None:
    events = (
        b'data: {"choices":[{"delta":{"content":"x"},"finish_reason":"stop"}]}\n\ndata: [DONE]\n\n'
    )
    transport = httpx.MockTransport(
        lambda _: httpx.Response(200, content=events, headers={"content-type": "text/event-stream"})
    )
    async with httpx.AsyncClient(transport=transport) as client:
        settings = ModelSettings(temperature=0)
        model = OpenAIChatModel("gpt-5", api_key=KEY, http_client=client, settings=settings)
        response = await drain(model.stream(ModelRequest([HI])))
    assert response.notices == ("`gpt-5` at openai cannot take a temperature: left out",)
