"""Outputs of several types, functions as outputs, and the wrappers around them."""

import datetime
import enum
from dataclasses import dataclass
from functools import partial
from typing import Annotated, Any, Literal, NewType

import pytest
from pydantic import BaseModel, Field
from typing_extensions import TypedDict

from tinyagents import (
    Injected,
    NativeOutput,
    Output,
    PromptedOutput,
    Tool,
    ToolOutput,
    tool,
)
from tinyagents.harness.errors import (
    ConfigurationError,
    InvalidRequestError,
    StructuredOutputError,
    ToolSchemaError,
)
from tinyagents.harness.message import InvalidArguments, ToolCallBlock
from tinyagents.harness.model import ModelProfile
from tinyagents.harness.structured import OutputSpec
from tinyagents.harness.tool import ToolAccess, ToolPolicy


class City(BaseModel):
    """A city."""

    name: str


@dataclass
class River:
    name: str
    length: int


class Lake(TypedDict):
    depth: int


def save(name: str, size: int = 1) -> str:
    """Save it."""
    return f"{name} {size}"


UserId = NewType("UserId", int)


def properties(schema: Any) -> Any:
    """What a schema says of each property."""
    return schema["properties"]


class Color(enum.Enum):
    RED = "red"


@pytest.mark.parametrize(
    ("output", "text", "value"),
    [
        (int, '{"value":3}', 3),
        (list[str], '["a"]', ["a"]),
        (Literal["a", "b"], '{"value":"b"}', "b"),
        (Color, '{"value":"red"}', Color.RED),
        (datetime.date, '{"value":"2026-12-01"}', datetime.date(2026, 12, 1)),
        (UserId, '{"value":3}', 3),
        (River, '{"name":"Elbe","length":1094}', River("Elbe", 1094)),
        (Lake, '{"depth":3}', {"depth": 3}),
        (City | None, '{"value":null}', None),
        (City | River, '{"value":{"name":"Elbe","length":1}}', River("Elbe", 1)),
        ([City, int], '{"value":3}', 3),
    ],
)
def test_anything_that_pydantic_describes_is_an_output(output: Any, text: str, value: Any) -> None:
    assert OutputSpec(output).parse(text)[1] == value


@pytest.mark.parametrize("output", [City | River | Lake, [City, River, Lake]])
def test_each_type_of_a_union_of_objects_is_a_tool_of_its_own(output: Any) -> None:
    spec = OutputSpec[Any](output)
    assert [shown.name for shown in spec.tool_schemas] == ["City", "River", "Lake"]
    assert [shown.parameters["type"] for shown in spec.tool_schemas] == ["object"] * 3
    assert spec.tool_schemas[0].description == "A city."
    made = ToolCallBlock(id="1", name="River", arguments={"name": "Elbe", "length": 1})
    assert spec.find_in_call(made).value == River("Elbe", 1)


def test_in_a_text_a_union_is_one_object_around_all_of_its_types() -> None:
    spec = OutputSpec[Any](City | River)
    assert spec.name == "City | River"
    inner = properties(spec.schema)["value"]
    assert [properties(choice).keys() for choice in inner["anyOf"]] == [
        {"name"},
        {"name", "length"},
    ]


def test_a_union_with_what_is_no_object_stays_one_tool() -> None:
    (shown,) = OutputSpec(City | None).tool_schemas
    assert properties(shown.parameters).keys() == {"value"}


def test_the_arguments_of_a_call_go_through_the_ladder() -> None:
    broken = InvalidArguments(raw="{name: 'x'", reason="no JSON")
    made = ToolCallBlock(id="1", name="City", arguments={}, invalid=broken)
    with pytest.raises(StructuredOutputError, match="not JSON"):
        OutputSpec(City).find_in_call(made, may_close=True)
    made = made.model_copy(update={"invalid": InvalidArguments(raw='{name: "x"}', reason="")})
    found = OutputSpec(City).find_in_call(made)
    assert (found.value, found.step) == (City(name="x"), "relaxed")


def test_a_function_is_shown_by_its_parameters_and_gets_what_fits_them() -> None:
    spec = OutputSpec(save)
    (shown,) = spec.tool_schemas
    assert (shown.name, shown.description) == ("save", "Save it.")
    assert properties(shown.parameters).keys() == {"name", "size"}
    found = spec.find('{"name":"x"}')
    assert found.member.function is not None
    assert found.json == {"name": "x"}
    with pytest.raises(StructuredOutputError) as caught:
        spec.find('{"name":1,"more":2}')
    assert caught.value.errors[0].startswith("answer.name: ")


def test_what_the_application_fills_is_not_shown() -> None:
    def store(name: str, state: Annotated[Any, Injected("state")]) -> None:
        """Store it."""

    assert properties(OutputSpec(store).schema).keys() == {"name"}


def test_functions_and_types_stand_together_and_the_first_that_fits_is_taken() -> None:
    spec = OutputSpec[Any]([River, save, {"title": "Any", "type": "object"}])
    assert spec.tool_names == ("River", "save", "Any")
    assert spec.find('{"value":{"name":"x","length":2}}').value == River("x", 2)
    assert spec.find('{"value":{"name":"x"}}').member.name == "save"
    assert spec.find('{"value":{"other":1}}').member.name == "Any"
    with pytest.raises(StructuredOutputError, match="as `River`"):
        spec.find('{"value":3}')


def test_definitions_of_several_types_stand_together() -> None:
    class Region(BaseModel):
        cities: list[City]
        capital: City

    def found(city: City, capital: City) -> None:
        """Found it."""

    spec = OutputSpec[Any]([Region, found])
    shown: Any = spec.schema
    assert list(shown["$defs"]) == ["City"]
    text = '{"value":{"city":{"name":"x"},"capital":{"name":"y"}}}'
    assert spec.find(text).member.name == "found"


def test_definitions_that_contradict_each_other_are_refused() -> None:
    def shape(kind: str) -> dict[str, Any]:
        reference = {"$ref": "#/$defs/a"}
        properties = {"one": reference, "two": reference}
        return {"title": kind, "properties": properties, "$defs": {"a": {"type": kind}}}

    with pytest.raises(InvalidRequestError, match="define `a`"):
        OutputSpec[Any]([shape("string"), shape("integer"), save])


def test_a_name_and_a_description_can_be_given() -> None:
    spec: OutputSpec[Any] = OutputSpec(
        ToolOutput(City, name="place", description="Where.", strict=True)
    )
    (shown,) = spec.tool_schemas
    assert (shown.name, shown.description, shown.strict) == ("place", "Where.", True)
    spec = OutputSpec([ToolOutput(City, name="place"), save])
    assert spec.tool_names == ("place", "save")
    assert spec.strategy == "tool"
    form = OutputSpec[Any](NativeOutput([City, River], name="thing", description="A thing."))
    assert (form.response_format().name, form.response_format().description) == (
        "thing",
        "A thing.",
    )


def test_a_partial_and_a_callable_object_are_functions_too() -> None:
    class Saver:
        """Saves it."""

        def __call__(self, name: str) -> str:
            return name

    assert OutputSpec(Saver()).name == "Saver"
    assert properties(OutputSpec(partial(save, size=3)).schema).keys() == {"name"}


@pytest.mark.parametrize(
    ("make", "said"),
    [
        (lambda: OutputSpec([]), "empty"),
        (lambda: OutputSpec("City"), "is a text and no output type"),
        (lambda: OutputSpec(City(name="Oslo")), "cannot be an output type.*Pass a class"),
        (lambda: OutputSpec([City, City]), "two of the output types are named `City`"),
        (lambda: OutputSpec(Output(NativeOutput(City))), "one wrapper stands in another"),
        (lambda: OutputSpec([PromptedOutput(City)]), "in a list"),
        (lambda: OutputSpec(ToolOutput(City | River, name="x")), "cannot name 2 tools"),
        (lambda: OutputSpec([ToolOutput(City, validators=[len])]), "in a list"),
    ],
)
def test_what_cannot_be_an_output_is_refused_with_the_reason(make: Any, said: str) -> None:
    with pytest.raises(InvalidRequestError, match=said):
        make()


def test_a_function_that_cannot_be_described_is_refused() -> None:
    def bag(**more: int) -> None: ...

    with pytest.raises(ToolSchemaError, match="more"):
        OutputSpec(bag)
    with pytest.raises(ConfigurationError, match="name"):
        OutputSpec(lambda name: name)


def test_a_tool_in_whose_calls_others_have_a_say_is_no_output() -> None:
    @tool(policy=ToolPolicy(access=ToolAccess(approval_required=True)))
    def pay(amount: int) -> None:
        """Pay."""

    for gated in (pay, Tool.external(name="click")):
        with pytest.raises(InvalidRequestError, match="nobody would be asked"):
            OutputSpec[Any](gated)


def test_an_option_that_there_is_not_is_refused() -> None:
    unknown: Any = {"descripton": "A city."}
    with pytest.raises(TypeError, match="no option `descripton`; there are `name`, `description`"):
        ToolOutput(City, **unknown)


def test_validators_that_are_no_list_are_refused() -> None:
    single: Any = save
    with pytest.raises(ConfigurationError, match="pass \\[<function save"):
        Output(City, validators=single)


def test_an_annotated_type_is_called_by_the_type() -> None:
    spec = OutputSpec[Any](Annotated[int, Field(ge=0, description="An age.")])
    assert (spec.name, spec.description) == ("int", "An age.")


@pytest.mark.parametrize("validator", [3, City, lambda: 1, lambda a, b, c: 1])
def test_what_is_no_validator_is_refused(validator: Any) -> None:
    with pytest.raises(ConfigurationError, match="validator"):
        Output(City, validators=[validator])


def test_a_template_without_a_place_for_the_schema_is_refused() -> None:
    with pytest.raises(ConfigurationError, match="schema"):
        PromptedOutput(City, template="Answer as JSON.")


def test_the_prompt_is_the_usual_one_or_what_the_template_makes_of_it() -> None:
    told = OutputSpec(PromptedOutput(City)).instruction.text
    assert "JSON alone" in told
    assert '"name"' in told
    told = OutputSpec(PromptedOutput(City, template="{a} {schema} {b}")).instruction.text
    assert told.startswith('{a} {"type":"object"')
    assert told.endswith("} {b}")


@pytest.mark.parametrize(
    ("profile", "strategy"),
    [
        (ModelProfile(native_structured_output=True, json_schema=True), "native"),
        (ModelProfile(tool_calling=True, json_schema=True), "tool"),
        (ModelProfile(), "tool"),
        (ModelProfile(tool_calling=False, json_schema=True), "native"),
        (ModelProfile(tool_calling=False), "native"),
        (ModelProfile(tool_calling=False, json_schema=False), "prompted"),
    ],
)
def test_the_profile_decides_where_the_caller_does_not(
    profile: ModelProfile, strategy: str
) -> None:
    assert OutputSpec(City).strategy_for(profile) == strategy
    assert OutputSpec(Output(City)).strategy_for(profile) == strategy
    for wrapper in (NativeOutput, ToolOutput, PromptedOutput):
        assert OutputSpec(wrapper(City)).strategy_for(profile) == wrapper.strategy


def test_the_fields_of_a_type_may_say_more() -> None:
    class Named(BaseModel):
        name: str = Field(min_length=2, description="At least two letters.")

    with pytest.raises(StructuredOutputError) as caught:
        OutputSpec(Named).parse('{"name":"x"}')
    assert "at least 2" in caught.value.errors[0]
