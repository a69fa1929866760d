"""Checks that are compiled from a schema: refused early when they cannot work, never a download."""

import subprocess
import sys
from typing import Any

import pytest

from tinyagents.harness.errors import InvalidRequestError, ToolSchemaError
from tinyagents.harness.json_schema import SchemaCheck
from tinyagents.harness.text import JsonObject

TREE: dict[str, Any] = {
    "type": "object",
    "properties": {"kids": {"type": "array", "items": {"$ref": "#"}}},
    "additionalProperties": False,
}


def test_a_value_that_fits_has_no_problems() -> None:
    check = SchemaCheck(TREE, "the tree")
    assert check.problems({"kids": [{"kids": []}]}, "tree") == []


def test_each_problem_is_a_sentence_with_its_path() -> None:
    check = SchemaCheck(TREE, "the tree")
    assert check.problems({"kids": [{"kids": 1}, {"x": 1}]}, "tree", member="branch") == [
        "tree.kids[0].kids: array is needed, got integer",
        "tree.kids[1].x is not a branch",
    ]


def test_a_long_list_of_problems_is_cut() -> None:
    check = SchemaCheck({"items": {"type": "string"}}, "the list")
    assert len(check.problems(list(range(100)), "list")) == 20


@pytest.mark.parametrize("error", [InvalidRequestError, ToolSchemaError])
def test_the_caller_says_what_is_raised(error: type[InvalidRequestError]) -> None:
    with pytest.raises(InvalidRequestError, match=r"the tree\['type'\]: no JSON Schema") as caught:
        SchemaCheck({"type": "strin"}, "the tree", error)
    assert type(caught.value) is error


@pytest.mark.parametrize(
    "schema",
    [
        {"$ref": "https://example.com/a.json"},
        {"allOf": [{"not": {"$ref": "other.json"}}]},
        {"items": {"$ref": "#/$defs/a"}, "$defs": {"b": {}}},
        {"items": {"$ref": "#a"}, "$defs": {"a": {"$anchor": "b"}}},
        {"items": {"$ref": "#/allOf/x"}, "allOf": [{}]},
        {"items": {"$ref": "#/title/x"}, "title": "a"},
        {"$id": "https://example.com/a.json", "items": {"$ref": "b.json"}},
        {"$defs": {"a": {"$id": "https://example.com/a.json", "items": {"$ref": "#/$defs/a"}}}},
        {"$schema": "http://json-schema.org/draft-07/schema#", "items": [{"$ref": "#/nowhere"}]},
    ],
)
def test_a_reference_out_of_the_schema_or_to_nothing_is_refused(schema: dict[str, Any]) -> None:
    with pytest.raises(InvalidRequestError, match="in the tree leads nowhere"):
        SchemaCheck(schema, "the tree")


@pytest.mark.parametrize(
    "schema",
    [
        {"items": {"$ref": "#/$defs/a~1b~0"}, "$defs": {"a/b~": {"type": "string"}}},
        {"items": {"$ref": "#a"}, "$defs": {"a": {"$anchor": "a", "type": "string"}}},
        {"items": {"$ref": "a.json"}, "$defs": {"a": {"$id": "a.json", "type": "string"}}},
        {"items": {"$ref": "#/allOf/0"}, "allOf": [{"type": ["array", "string"]}]},
    ],
)
def test_a_reference_within_the_schema_is_followed(schema: dict[str, Any]) -> None:
    check = SchemaCheck(schema, "the tree")
    assert check.problems(["a"], "tree") == []
    (problem,) = check.problems([1], "tree")
    assert problem.startswith("tree[0]: ")


def test_a_property_named_ref_is_no_reference() -> None:
    schema: JsonObject = {"properties": {"$ref": {"type": "string"}}, "const": {"$ref": "x"}}
    assert SchemaCheck(schema, "it").problems({"$ref": "x"}, "it") == []


def test_what_the_validator_raises_is_a_problem() -> None:
    (problem,) = SchemaCheck({"$ref": "#"}, "the loop").problems({}, "loop")
    assert problem.startswith("loop: could not be checked: RecursionError")


def test_the_validator_is_loaded_when_the_first_check_is_made() -> None:
    code = (
        "import sys\n"
        "from tinyagents.harness.json_schema import SchemaCheck\n"
        "assert 'jsonschema' not in sys.modules\n"
        "SchemaCheck({}, 'it')\n"
        "assert 'jsonschema' in sys.modules\n"
    )
    subprocess.run([sys.executable, "-c", code], check=True)
