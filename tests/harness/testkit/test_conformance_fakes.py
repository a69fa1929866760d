"""The models of the testkit and the mock pass the suite that other models run."""

from collections.abc import Sequence
from typing import Any

from tinyagents.harness.model import (
    ChatModel,
    JsonObjectFormat,
    JsonSchemaFormat,
    ModelProfile,
    ModelRequest,
)
from tinyagents.harness.providers import MockModel
from tinyagents.testkit import FakeChatModel, Reply, ScriptedModel, Step, call, calls, say, say_json
from tinyagents.testkit.conformance import ChatModelConformance

ONLY_TEXT = ModelProfile(provider="mock", model="mock", streaming=True)


class TestScriptedModel(ChatModelConformance):
    def model(self, script: Sequence[Step]) -> ChatModel:
        return ScriptedModel(script)


class TestScriptedModelThatStreamsCharacters(ChatModelConformance):
    def model(self, script: Sequence[Step]) -> ChatModel:
        return ScriptedModel(script, chunk_size=1)


class TestMockModel(ChatModelConformance):
    scripted = False

    def model(self, script: Sequence[Step]) -> ChatModel:
        return MockModel(profile=ONLY_TEXT)


class TestFakeChatModel(ChatModelConformance):
    scripted = False

    def model(self, script: Sequence[Step]) -> ChatModel:
        return FakeChatModel("It is fine.", profile=ONLY_TEXT)


class TestModelThatFollowsPrompts(ChatModelConformance):
    """As a live model does: it gets no script, and answers what it is asked."""

    scripted = False

    def model(self, script: Sequence[Step]) -> ChatModel:
        return FakeChatModel(follow)


def follow(request: ModelRequest) -> Reply:
    """Do what a request asks for: call its tool, keep to its schema, or talk."""
    wanted = request.response_format
    if isinstance(wanted, JsonSchemaFormat):
        return say_json(example(wanted.schema, wanted.schema))
    if isinstance(wanted, JsonObjectFormat):
        return say_json({})
    answered = request.messages[-1].role == "tool"
    if not request.tools or request.tool_choice == "none" or answered:
        return say("It is fine.")
    tool = request.tools[0]
    made = call(tool.name, example(tool.parameters, tool.parameters))
    twice = "twice" in request.messages[-1].text
    return calls(made, made) if twice else made


def example(schema: Any, root: Any) -> Any:
    """Return a value that fits a schema of the suite."""
    match schema:
        case {"$ref": str(place)}:
            return example(root["$defs"][place.rpartition("/")[2]], root)
        case {"const": value}:
            return value
        case {"anyOf": [first, *_]}:
            return example(first, root)
        case {"type": "object"}:
            properties = schema.get("properties", {})
            return {name: example(each, root) for name, each in properties.items()}
        case {"type": "array"}:
            return [example(schema["items"], root)]
        case _:
            return "Paris"
