from pathlib import Path
from typing import Any, get_args

import pytest
from hypothesis import given, strategies as st
from pydantic import TypeAdapter, ValidationError

from tests.harness.message.examples import BLOCKS, MESSAGES
from tinyagents.harness.message import (
    AssistantMessage,
    Block,
    ImageBlock,
    JsonBlock,
    Message,
    ProviderExtensionBlock,
    ReasoningBlock,
    RefusalBlock,
    SystemMessage,
    TextBlock,
    ToolCallBlock,
    ToolMessage,
    UserMessage,
    dump_messages,
    load_messages,
    plain_tool_message,
)
from tinyagents.harness.usage import Usage

GOLDEN = Path(__file__).parents[2] / "golden"

TEXTS = st.text(st.characters(codec=None), max_size=8)
JSON_VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | TEXTS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(TEXTS, inner, max_size=3),
    max_leaves=6,
)
OBJECTS = st.dictionaries(TEXTS, JSON_VALUES, max_size=3)
PROVIDER_DATA = st.none() | st.dictionaries(st.sampled_from(["openai", "unheard_of"]), JSON_VALUES)
ANY_BLOCKS: st.SearchStrategy[Block] = st.one_of(
    st.sampled_from(BLOCKS),
    st.builds(TextBlock, text=TEXTS, provider_data=PROVIDER_DATA),
    st.builds(JsonBlock, value=JSON_VALUES, provider_data=PROVIDER_DATA),
    st.builds(
        ReasoningBlock,
        text=TEXTS,
        signature=st.none() | TEXTS,
        data=st.none() | TEXTS,
        redacted=st.booleans(),
        provider_data=PROVIDER_DATA,
    ),
    st.builds(ToolCallBlock, id=TEXTS, name=TEXTS, arguments=OBJECTS, provider_data=PROVIDER_DATA),
    st.builds(
        ProviderExtensionBlock, provider=TEXTS, data=JSON_VALUES, provider_data=PROVIDER_DATA
    ),
)
CONTENT = st.lists(ANY_BLOCKS, max_size=4)
ANY_MESSAGES: st.SearchStrategy[Message] = st.one_of(
    st.sampled_from(MESSAGES),
    st.builds(UserMessage, content=CONTENT, id=st.none() | TEXTS, provider_data=PROVIDER_DATA),
    st.builds(AssistantMessage, content=CONTENT, provider_data=PROVIDER_DATA),
    st.builds(
        ToolMessage,
        tool_call_id=TEXTS,
        content=CONTENT,
        is_error=st.booleans(),
        artifact=JSON_VALUES,
        provider_data=PROVIDER_DATA,
    ),
)


@given(st.lists(ANY_MESSAGES, max_size=5))
def test_messages_round_trip_through_json_byte_for_byte(messages: list[Message]) -> None:
    data = dump_messages(messages)
    loaded = load_messages(data)
    assert loaded == messages
    assert dump_messages(loaded) == data
    assert load_messages(data.encode()) == messages


@given(st.lists(ANY_MESSAGES, max_size=5))
def test_messages_round_trip_through_python_values(messages: list[Message]) -> None:
    assert load_messages([message.model_dump() for message in messages]) == messages
    assert load_messages([message.model_dump(mode="json") for message in messages]) == messages


def test_the_order_and_values_of_reasoning_parts_survive_saving() -> None:
    # C44: a signed part without text, redacted data, text, and a call with a provider's extra.
    (message,) = load_messages(dump_messages([MESSAGES[3]]))
    assert [block.type for block in message.content] == [
        "reasoning", "reasoning", "text", "tool_call",
    ]  # fmt: skip
    signed, redacted, _, call = message.content
    assert signed == ReasoningBlock(text="", signature="s1")
    assert redacted == ReasoningBlock(data="zz", redacted=True)
    assert call.provider_data == {"gemini": {"thought_signature": "g1"}}


# Golden files: an array with one entry a line. They change only by additions that are left out
# of the JSON where they are unset; whatever older versions stored must load for ever.


def lines_of(name: str) -> list[str]:
    lines = (GOLDEN / name).read_text("utf-8").splitlines()
    assert (lines[0], lines[-1]) == ("[", "]")
    return [line.removesuffix(",") for line in lines[1:-1]]


@pytest.mark.parametrize("line", lines_of("blocks.json"))
def test_a_stored_block_is_written_again_as_it_was(line: str) -> None:
    adapter: TypeAdapter[Block] = TypeAdapter(Block)
    assert adapter.validate_json(line).model_dump_json() == line


def test_the_stored_blocks_are_the_examples() -> None:
    assert [block.model_dump_json() for block in BLOCKS] == lines_of("blocks.json")


@pytest.mark.parametrize("line", lines_of("messages.json"))
def test_a_stored_message_is_written_again_as_it_was(line: str) -> None:
    assert dump_messages(load_messages(f"[{line}]")) == f"[{line}]"


def test_the_stored_messages_are_the_examples() -> None:
    assert load_messages((GOLDEN / "messages.json").read_text("utf-8")) == MESSAGES
    assert [message.model_dump_json() for message in MESSAGES] == lines_of("messages.json")


def test_messages_stored_before_the_newer_fields_load() -> None:
    system, user, assistant, tool, answer = load_messages(
        (GOLDEN / "messages_older.json").read_text("utf-8")
    )
    assert (system, user) == (SystemMessage(content="Be brief."), UserMessage(content="2 + 3?"))
    assert assistant == AssistantMessage(
        content=[
            ReasoningBlock(text="Add them."),
            ToolCallBlock(id="k1", name="add", arguments={"a": 2, "b": 3}),
        ],
        usage=Usage(input_tokens=10, output_tokens=4),
    )
    assert tool == ToolMessage(tool_call_id="k1", content="5")
    assert answer.text == "5"


def test_the_examples_show_every_kind_of_message() -> None:
    kinds = set(get_args(get_args(Message)[0]))
    assert {type(message) for message in MESSAGES} == kinds


@pytest.mark.parametrize("message", MESSAGES, ids=lambda message: message.role)
def test_the_role_comes_first(message: Message) -> None:
    assert message.model_dump_json().startswith(f'{{"role":"{message.role}"')
    assert repr(message).startswith(f"{type(message).__name__}(role='{message.role}'")


def test_what_is_unset_is_left_out_of_the_json() -> None:
    assert dump_messages([UserMessage(content="hi"), ToolMessage(tool_call_id="k")]) == (
        '[{"role":"user","content":[{"type":"text","text":"hi"}]},'
        '{"role":"tool","content":[],"tool_call_id":"k"}]'
    )


def test_a_string_is_one_text_block_and_an_empty_one_is_none() -> None:
    assert UserMessage(content="hi").content == [TextBlock(text="hi")]
    assert UserMessage(content="").content == []


def test_one_block_or_a_tuple_stands_for_a_list() -> None:
    block = TextBlock(text="hi")
    assert UserMessage(content=block).content == [block]
    assert UserMessage(content=(block, block)).content == [block, block]


def test_a_message_does_not_share_the_list_it_was_given() -> None:
    blocks: list[Block] = [TextBlock(text="a")]
    message = UserMessage(content=blocks)
    blocks.append(TextBlock(text="b"))
    assert message.text == "a"


def test_text_is_the_text_blocks_alone_joined_without_a_separator() -> None:
    message = AssistantMessage(
        content=[
            ReasoningBlock(text="hm"),
            TextBlock(text="a"),
            ImageBlock(file_id="f"),
            JsonBlock(value=1),
            TextBlock(text="b"),
        ]
    )
    assert message.text == "ab"


def test_tool_calls_are_a_view_of_the_blocks_in_order() -> None:
    first, second = ToolCallBlock(id="a", name="f"), ToolCallBlock(id="b", name="g")
    message = AssistantMessage(content=[first, TextBlock(text="and"), second])
    assert message.tool_calls == [first, second]
    assert message.tool_calls[0] is message.content[0]


def test_the_refusal_is_none_unless_there_is_one() -> None:
    assert AssistantMessage(content="sure").refusal is None
    blocks: list[Block] = [RefusalBlock(text="I "), RefusalBlock(text="cannot")]
    assert AssistantMessage(content=blocks).refusal == "I cannot"


def test_messages_are_frozen() -> None:
    name = "id"
    for message in MESSAGES:
        with pytest.raises(ValidationError, match="frozen"):
            setattr(message, name, "other")


@pytest.mark.parametrize(
    "data",
    [
        {"role": "robot", "content": []},
        {"role": "user", "content": [{"type": "text"}]},
        {"role": "user", "content": None},
        {"role": "user", "content": [], "tool_call_id": "k"},
        {"role": "tool", "content": []},
        {"content": []},
    ],
)
def test_what_describes_no_message_is_refused(data: dict[str, Any]) -> None:
    with pytest.raises(ValidationError):
        load_messages([data])


def test_an_artifact_is_cleaned_and_refused_where_it_is_not_json() -> None:
    assert ToolMessage(tool_call_id="k", artifact={"a\0": "\ud83d"}).artifact == {
        "a\ufffd": "\ufffd"
    }
    with pytest.raises(ValidationError, match="is not a JSON value"):
        ToolMessage.model_validate({"tool_call_id": "k", "artifact": object()})


def test_the_cheap_way_makes_the_same_tool_message() -> None:
    cheap = plain_tool_message("k1", "add", [TextBlock(text="3")])
    full = ToolMessage(tool_call_id="k1", name="add", content=[TextBlock(text="3")])
    assert cheap == full
    assert cheap.__dict__ == full.__dict__
    assert list(cheap.__dict__) == list(full.__dict__)
    assert cheap.model_fields_set == full.model_fields_set
    assert cheap.model_dump_json() == full.model_dump_json()
    assert cheap.model_copy(update={"is_error": True}).is_error
    assert "is_error" not in cheap.model_fields_set


def test_the_cheap_way_checks_content_that_is_more_than_blocks() -> None:
    raw: list[Any] = [{"type": "text", "text": "3"}]
    assert plain_tool_message("k1", "add", raw).content == [TextBlock(text="3")]
    raw.append(object())
    with pytest.raises(ValidationError, match=r"content\.1"):
        plain_tool_message("k1", "add", raw)


def test_blocks_are_taken_over_as_they_are_in_a_list_of_the_messages_own() -> None:
    block = TextBlock(text="3")
    blocks: list[Block] = [block]
    message = UserMessage(content=blocks)
    blocks.append(block)
    assert len(message.content) == 1
    assert message.content[0] is block


def test_blocks_and_their_data_may_stand_side_by_side() -> None:
    mixed: list[Any] = [TextBlock(text="a"), {"type": "text", "text": "b\0"}]
    assert UserMessage(content=mixed).text == "ab\ufffd"
    with pytest.raises(ValidationError, match=r"content\.1"):
        UserMessage(content=[mixed[0], object()])  # type: ignore[list-item]
