"""Reading one response: the value or the error, and the response in any case."""

from typing import Any

import pytest
from pydantic import BaseModel

from tinyagents import AssistantMessage, ToolOutput
from tinyagents.harness.errors import (
    OutputRefusedError,
    OutputTruncatedError,
    StructuredOutputError,
)
from tinyagents.harness.message import RefusalBlock, ToolCallBlock
from tinyagents.harness.model import JsonObjectFormat, JsonSchemaFormat, ModelResponse
from tinyagents.harness.structured import (
    StructuredExtractor,
    StructuredStrategy,
    response_format_for_strategy,
)


class Items(BaseModel):
    items: list[str]


class Other(BaseModel):
    items: list[int]


def said(text: str, finish_reason: Any = "stop") -> ModelResponse:
    return ModelResponse(AssistantMessage(content=text), finish_reason=finish_reason)


def called(*names: str, **arguments: Any) -> ModelResponse:
    content = [ToolCallBlock(id=name, name=name, arguments=arguments) for name in names]
    return ModelResponse(AssistantMessage(content=content), finish_reason="tool_calls")


def test_a_value_comes_typed_and_as_json_with_the_response() -> None:
    response = said('So: {"items":["a"]}')
    output = StructuredExtractor(Items).extract(response)
    assert output.as_value() == output.value == Items(items=["a"])
    assert output.json == {"items": ["a"]}
    assert (output.step, output.error, output.response) == ("slice", None, response)


def test_the_first_call_of_the_output_is_taken_and_a_missing_one_is_an_error() -> None:
    extractor = StructuredExtractor(ToolOutput(Items))
    assert extractor.extract(called("other", "Items", items=["a"])).as_value().items == ["a"]
    error = extractor.extract(said('{"items":["a"]}')).error
    assert error is not None
    assert "no call of `Items`" in error.message


def test_an_error_stands_in_the_place_of_a_value_and_is_raised_on_demand() -> None:
    response = said('{"items":[1]}')
    output = StructuredExtractor(Items).extract(response)
    assert output.value is None
    for take in (output.as_value, lambda: output.parse(Other)):
        with pytest.raises(StructuredOutputError, match=r"answer\.items\[0\]") as caught:
            take()
        assert caught.value is output.error
    assert output.error is not None
    assert output.error.answer is response.message
    assert output.response is response


def test_a_value_can_be_parsed_as_another_type() -> None:
    output = StructuredExtractor[Any]({"type": "object"}).extract(said('{"items":[1]}'))
    assert output.parse(Other) == Other(items=[1])
    with pytest.raises(StructuredOutputError, match="does not fit `Items`"):
        output.parse(Items)


@pytest.mark.parametrize("text", ['{"items":["a"]}', '{"items":["a"', ""])
def test_a_cut_answer_is_truncated_whether_it_parses_or_not(text: str) -> None:
    error = StructuredExtractor(Items).extract(said(text, "length")).error
    assert isinstance(error, OutputTruncatedError)
    assert error.text == text
    assert "max_tokens" in error.message


def test_a_cut_call_is_truncated_with_its_arguments() -> None:
    response = called("Items", items=["a"])
    response.finish_reason = "length"
    error = StructuredExtractor(Items, strategy="tool").extract(response).error
    assert isinstance(error, OutputTruncatedError)
    assert error.text == '{"items":["a"]}'


@pytest.mark.parametrize("reason", ["refusal", "content_filter"])
def test_a_refusal_is_told_as_one(reason: str) -> None:
    error = StructuredExtractor(Items).extract(said("No.", reason)).error
    assert isinstance(error, OutputRefusedError)
    assert error.text == "No."
    block = ModelResponse(AssistantMessage(content=[RefusalBlock(text="Never.")]))
    error = StructuredExtractor(Items).extract(block).error
    assert isinstance(error, OutputRefusedError)
    assert error.text == "Never."


@pytest.mark.parametrize("reason", [None, "other", "error", "pause"])
def test_an_answer_that_may_have_been_cut_is_not_closed(reason: str | None) -> None:
    extractor = StructuredExtractor(Items)
    assert extractor.extract(said('{"items":["a"', "stop")).step == "closed"
    assert extractor.extract(said('{"items":["a"', reason)).error is not None


def test_a_blank_text_is_an_error_of_its_own() -> None:
    error = StructuredExtractor(Items).extract(said(" ")).error
    assert error is not None
    assert "it is empty" in error.message


@pytest.mark.parametrize(
    ("strategy", "form"),
    [("native", JsonSchemaFormat), ("prompted", JsonObjectFormat), ("tool", type(None))],
)
def test_each_strategy_has_its_response_format(strategy: StructuredStrategy, form: type) -> None:
    assert type(response_format_for_strategy(strategy, Items)) is form
