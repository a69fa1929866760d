"""Estimating whole prompts: nothing that is billed is nothing, and never less than was reported."""

import gc
import threading
from typing import Any

import pytest

from tinyagents import (
    AssistantMessage,
    AudioBlock,
    CitationBlock,
    FileBlock,
    ImageBlock,
    JsonBlock,
    ProviderExtensionBlock,
    ReasoningBlock,
    RefusalBlock,
    SystemMessage,
    TextBlock,
    ToolCallBlock,
    ToolMessage,
    ToolResultBlock,
    Usage,
    UserMessage,
)
from tinyagents.harness.message import InvalidArguments, Message
from tinyagents.harness.model import JsonSchemaFormat, ModelRequest, ToolSchema
from tinyagents.harness.token_estimation import TokenEstimator


class Counting:
    """Counts characters, and how often it was asked."""

    def __init__(self) -> None:
        self.asked = 0

    def count_text(self, text: str, /) -> int:
        self.asked += 1
        return len(text)


def user(*blocks: Any) -> UserMessage:
    return UserMessage(content=list(blocks))


EMPTY = TokenEstimator().message(user())


@pytest.mark.parametrize(
    "block",
    [
        pytest.param(block, id=block.type)
        for block in (
            TextBlock(text="a"),
            JsonBlock(value={}),
            ImageBlock(url="https://x.test/a.png"),
            AudioBlock(data="AAAA", media_type="audio/wav"),
            FileBlock(file_id="f1"),
            ToolCallBlock(id="c", name="f"),
            ToolResultBlock(tool_call_id="c"),
            ReasoningBlock(),
            ReasoningBlock(data="sealed", redacted=True),
            CitationBlock(),
            RefusalBlock(text="n"),
            ProviderExtensionBlock(provider="p", data=None),
        )
    ],
)
def test_every_kind_of_block_weighs_something(block: Any) -> None:
    assert TokenEstimator().message(AssistantMessage(content=[block])) > EMPTY


def test_the_arguments_of_calls_weigh_in_the_unreadable_ones_too() -> None:
    estimator = TokenEstimator()
    plain = ToolCallBlock(id="c", name="f", arguments={"text": "x" * 2_000})
    broken = ToolCallBlock(
        id="c", name="f", invalid=InvalidArguments(raw="y" * 2_000, reason="cut")
    )
    for block in (plain, broken):
        assert estimator.message(AssistantMessage(content=[block])) > 500


def test_larger_files_and_sounds_weigh_more_and_a_small_picture_less() -> None:
    estimator = TokenEstimator()
    sizes = [
        estimator.message(user(FileBlock.from_bytes(b"x" * size, "application/pdf")))
        for size in (10, 1_000_000)
    ]
    assert sizes[0] < sizes[1]
    text = estimator.message(user(FileBlock.from_bytes(b"x" * 4_000, "text/plain")))
    assert 1_000 <= text <= 1_010
    low, high = (ImageBlock(url="https://x.test", detail=d) for d in ("low", "high"))
    assert estimator.message(user(low)) < estimator.message(user(high))


def test_tools_and_the_answers_format_weigh_in_and_none_of_them_nothing() -> None:
    estimator = TokenEstimator()
    tools = [
        ToolSchema(name=f"t{n}", description="Does it.", parameters={"type": "object"})
        for n in range(10)
    ]
    assert estimator.tools([]) == 0
    assert estimator.tools(tools) == 10 * estimator.tools(tools[:1])
    wanted = JsonSchemaFormat(name="x", schema={"type": "object", "properties": {}})
    request = ModelRequest([user(TextBlock(text="hi"))], tools, response_format=wanted)
    estimate = estimator.request(request)
    assert estimate.tools > 0
    assert estimate.response_format > 0
    assert estimate.total == estimate.messages + estimate.tools + estimate.response_format


def test_the_title_and_description_on_top_of_parameters_are_not_counted_twice() -> None:
    estimator = TokenEstimator(Counting())
    bare = ToolSchema(name="t", description="d", parameters={"type": "object"})
    told = ToolSchema(
        name="t", description="d", parameters={"type": "object", "title": "T", "description": "D"}
    )
    assert estimator.tools([told]) == estimator.tools([bare])


def answered(used: int, *, source: Any = "reported") -> list[Message]:
    usage = Usage(input_tokens=used - 10, output_tokens=10, source=source)
    return [user(TextBlock(text="hi")), AssistantMessage(content="hello", usage=usage)]


def test_the_total_is_never_below_what_was_reported_and_what_follows() -> None:
    estimator = TokenEstimator()
    last = user(TextBlock(text="a" * 400))
    estimate = estimator.prompt([*answered(5_000), last])
    assert estimate.total == 5_000 + estimator.message(last)


def test_a_report_that_is_below_the_estimate_lowers_nothing() -> None:
    estimator = TokenEstimator()
    messages: list[Message] = [SystemMessage(content="x" * 4_000), *answered(20)]
    assert estimator.prompt(messages).total == estimator.messages(messages)


def test_estimated_usage_is_no_report_and_a_shortened_history_has_none() -> None:
    estimator = TokenEstimator()
    assert estimator.prompt(answered(5_000, source="estimated")).total < 100
    assert estimator.prompt(answered(5_000), reported=False).total < 100


def test_only_the_latest_report_counts() -> None:
    messages = [*answered(9_000), *answered(300)]
    assert TokenEstimator().prompt(messages).floor == 300


def test_a_calibrated_estimate_grows_with_the_report_by_a_quarter_at_most() -> None:
    messages: list[Message] = [SystemMessage(content="x" * 4_000), *answered(1_100)]
    own = TokenEstimator().messages(messages)
    calibrated = TokenEstimator(calibrated=True)
    assert calibrated.prompt(messages).scale == pytest.approx(1_100 / own)
    assert calibrated.prompt([*messages[:1], *answered(90_000)]).scale == 1.25
    assert calibrated.prompt([*messages[:1], *answered(20)]).scale == 1.0
    assert calibrated.prompt(answered(90_000)[1:]).scale == 1.0


def test_a_message_is_counted_once_as_long_as_it_lives() -> None:
    counter = Counting()
    estimator = TokenEstimator(counter)
    messages = [user(TextBlock(text=str(n))) for n in range(50)]
    first = estimator.messages(messages)
    asked = counter.asked
    assert estimator.messages(messages) == first
    assert counter.asked == asked
    messages[0].content.append(TextBlock(text="more"))
    assert estimator.messages(messages) == first + 4


def test_what_was_counted_of_a_message_goes_with_it() -> None:
    counter = Counting()
    estimator = TokenEstimator(counter)
    for _ in range(3):
        message = user(TextBlock(text="x" * 10))
        estimator.message(message)
        del message
        gc.collect()
    assert counter.asked == 6  # the role and the text, each time anew


def test_results_of_tools_and_names_weigh_in() -> None:
    estimator = TokenEstimator(Counting())
    named = UserMessage(content="hi", name="ann")
    assert estimator.message(named) == estimator.message(UserMessage(content="hi")) + 3
    result = ToolMessage(tool_call_id="c1", content="ok", name="f")
    assert estimator.message(result) == 3 + len("tool") + len("f") + len("c1") + len("ok")


class Threaded(Counting):
    """Tells in which threads it has counted."""

    def __init__(self) -> None:
        super().__init__()
        self.threads: set[int] = set()

    def count_text(self, text: str, /) -> int:
        self.threads.add(threading.get_ident())
        return super().count_text(text)


async def test_a_tokenizer_works_on_long_texts_in_another_thread_and_once() -> None:
    counter = Threaded()
    estimator = TokenEstimator(counter)
    messages = [user(TextBlock(text="x" * 9_000)), user(TextBlock(text="short"))]
    await estimator.prepare(messages)
    asked = counter.asked
    assert estimator.messages(messages) > 9_000
    await estimator.prepare(messages)
    assert counter.asked == asked
    assert await estimator.counted("y" * 9_000) == 9_000
    assert threading.get_ident() not in counter.threads


async def test_short_texts_are_counted_where_they_are() -> None:
    counter = Threaded()
    estimator = TokenEstimator(counter)
    await estimator.prepare([user(TextBlock(text="short"))])
    assert counter.asked == 0
    assert await estimator.counted("short") == 5
    assert counter.threads == {threading.get_ident()}
