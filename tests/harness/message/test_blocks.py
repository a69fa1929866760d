import base64
from typing import Any, get_args

import pytest
from pydantic import BaseModel, TypeAdapter, ValidationError

from tests.harness.message.examples import BLOCKS
from tinyagents.harness.message import (
    AssistantMessage,
    AudioBlock,
    Block,
    FileBlock,
    ImageBlock,
    InvalidArguments,
    JsonBlock,
    ReasoningBlock,
    TextBlock,
    ToolCallBlock,
    ToolResultBlock,
    dump_messages,
    load_messages,
)
from tinyagents.harness.text import MAX_JSON_DEPTH

ANY_BLOCK: TypeAdapter[Block] = TypeAdapter(Block)


@pytest.mark.parametrize("block", BLOCKS, ids=lambda block: block.type)
def test_a_block_round_trips_through_json_and_python(block: Block) -> None:
    assert ANY_BLOCK.validate_json(block.model_dump_json()) == block
    assert ANY_BLOCK.validate_python(block.model_dump()) == block


@pytest.mark.parametrize("block", BLOCKS, ids=lambda block: block.type)
def test_the_type_comes_first(block: Block) -> None:
    assert block.model_dump_json().startswith(f'{{"type":"{block.type}"')
    assert repr(block).startswith(f"{type(block).__name__}(type='{block.type}'")


def test_the_examples_show_every_kind_of_block() -> None:
    kinds = set(get_args(get_args(Block)[0]))
    assert {type(block) for block in BLOCKS} == kinds


def test_what_is_unset_is_left_out_of_the_json() -> None:
    assert TextBlock(text="hi").model_dump_json() == '{"type":"text","text":"hi"}'
    assert ReasoningBlock().model_dump_json() == '{"type":"reasoning","text":""}'
    assert ToolCallBlock(id="k1", name="f").model_dump_json() == (
        '{"type":"tool_call","id":"k1","name":"f","arguments":{}}'
    )


@pytest.mark.parametrize("block", BLOCKS, ids=lambda block: block.type)
def test_a_block_is_frozen(block: Block) -> None:
    name = "provider_data"
    with pytest.raises(ValidationError, match="frozen"):
        setattr(block, name, {})


def test_an_unknown_type_or_field_is_refused() -> None:
    with pytest.raises(ValidationError, match="hologram"):
        ANY_BLOCK.validate_python({"type": "hologram"})
    with pytest.raises(ValidationError, match="colour"):
        ANY_BLOCK.validate_python({"type": "text", "text": "hi", "colour": "red"})


def test_text_is_cleaned_wherever_it_enters() -> None:
    broken, clean = "\ud83d\0", "\ufffd\ufffd"
    assert TextBlock(text=broken).text == clean
    assert ReasoningBlock(text=broken, signature=broken).signature == clean
    call = ToolCallBlock(id=broken, name=broken, arguments={broken: [broken, {broken: broken}]})
    assert (call.id, call.name) == (clean, clean)
    assert call.arguments == {clean: [clean, {clean: clean}]}
    assert InvalidArguments(raw=broken, reason=broken).raw == clean
    assert JsonBlock(value={broken: broken}).value == {clean: clean}
    assert TextBlock(text="x", provider_data={broken: broken}).provider_data == {clean: clean}


def test_whatever_was_cleaned_can_be_encoded() -> None:
    call = ToolCallBlock(id="\ud83d", name="f", arguments={"\ud83d": "\0"})
    assert ANY_BLOCK.validate_json(call.model_dump_json()) == call


def test_integers_of_any_size_in_arguments_are_exact() -> None:
    call = ToolCallBlock(id="k", name="f", arguments={"n": 2**70})
    assert ANY_BLOCK.validate_json(call.model_dump_json()) == call


def test_arguments_must_be_an_object() -> None:
    for value in ([1], "x", 7, True, None):
        with pytest.raises(ValidationError, match="a JSON object is needed"):
            ANY_BLOCK.validate_python(
                {"type": "tool_call", "id": "k", "name": "f", "arguments": value}
            )


def test_what_is_not_json_is_a_validation_error() -> None:
    for value in (object(), b"bytes", {"a": {1, 2}}):
        with pytest.raises(ValidationError, match="is not a JSON value"):
            JsonBlock.model_validate({"value": value})
    deep: Any = 1
    for _ in range(300):
        deep = [deep]
    with pytest.raises(ValidationError, match="nested deeper"):
        JsonBlock.model_validate({"value": deep})


def test_a_value_as_deep_as_allowed_can_be_stored() -> None:
    deep: Any = 1
    for _ in range(MAX_JSON_DEPTH):
        deep = [deep]
    block = JsonBlock(value=deep)
    result = ToolResultBlock(tool_call_id="k", content=[block])
    messages = [AssistantMessage(content=[result])]
    assert load_messages(dump_messages(messages)) == messages


def test_a_block_keeps_nothing_of_the_callers_containers() -> None:
    arguments: dict[str, Any] = {"a": [1]}
    data: dict[str, Any] = {"openai": {"id": "x"}}
    call = ToolCallBlock(id="k", name="f", arguments=arguments, provider_data=data)
    arguments["a"].append(2)
    data["openai"]["id"] = "y"
    assert call.arguments == {"a": [1]}
    assert call.provider_data == {"openai": {"id": "x"}}


def test_arguments_that_are_not_given_are_not_shared() -> None:
    first, second = ToolCallBlock(id="a", name="f"), ToolCallBlock(id="b", name="f")
    assert first.arguments == {}
    assert first.arguments is not second.arguments


def test_media_needs_exactly_one_source() -> None:
    with pytest.raises(ValidationError, match="got none of them"):
        ImageBlock()
    with pytest.raises(ValidationError, match="got url and file_id"):
        ImageBlock(url="https://example.org/a.png", file_id="f1")
    with pytest.raises(ValidationError, match="media_type is needed"):
        ImageBlock(data="aGk=")


def test_media_made_from_bytes_gives_them_back() -> None:
    assert ImageBlock.from_bytes(b"hi", "image/png").decode() == b"hi"
    assert AudioBlock.from_bytes(b"hi", "audio/wav").decode() == b"hi"
    file = FileBlock.from_bytes(b"hi", "text/plain", "a.txt")
    assert (file.decode(), file.name) == (b"hi", "a.txt")


def test_a_data_uri_is_decoded_and_an_address_is_not() -> None:
    encoded = base64.b64encode(b"hi").decode()
    assert ImageBlock(url=f"data:image/png;base64,{encoded}").decode() == b"hi"
    assert ImageBlock(url="data:text/plain,hi").decode() is None
    assert ImageBlock(url="https://example.org/a.png").decode() is None
    assert ImageBlock(file_id="f1").decode() is None


@pytest.mark.parametrize("data", ["a", "****", "grüße"])
def test_what_is_not_base64_is_a_value_error_that_says_so(data: str) -> None:
    with pytest.raises(ValueError, match="not base64"):
        ImageBlock(data=data, media_type="image/png").decode()


def test_a_result_may_hold_any_blocks() -> None:
    block = ToolResultBlock(tool_call_id="k", content=[TextBlock(text="a"), JsonBlock(value=[1])])
    assert ANY_BLOCK.validate_json(block.model_dump_json()) == block


def test_blocks_have_a_json_schema() -> None:
    class Holder(BaseModel):
        blocks: list[Block]

    schema = Holder.model_json_schema()
    call = schema["$defs"]["ToolCallBlock"]["properties"]
    assert call["arguments"]["type"] == "object"
    assert call["type"]["const"] == "tool_call"
