"""Calls as JSON between tags."""

from collections.abc import Sequence

from ..message import ToolCallBlock, ToolMessage
from ..model import ToolChoice, ToolSchema
from ..text import dump_json
from ._dialect import ReplyReader
from ._reader import TagReader
from ._writing import choice_sentences, result_elements

_HOW = """\
# Tools

You can call tools. To call one, write its name and its arguments as one JSON object between these tags:

<tool_call>
{"name": "the name of the tool", "arguments": {"the name of a parameter": "its value"}}
</tool_call>

The arguments must fit the JSON Schema of the tool's parameters. After your calls end the reply: the \
results come in the next message, in the order of the calls."""


class XmlDialect:
    """Tools as JSON Schemas, calls as JSON between ``<tool_call>`` tags.

    The form that most open models have seen in training; the best choice where nothing is known.
    """

    __slots__ = ()

    @property
    def name(self) -> str:
        """``xml``."""
        return "xml"

    def __repr__(self) -> str:
        return "XmlDialect()"

    def instructions(
        self, tools: Sequence[ToolSchema], choice: ToolChoice, /, *, parallel: bool = True
    ) -> str:
        """Return the text that shows a model its tools and how to call them."""
        listed = "\n".join(map(_listed, tools))
        sentences = " ".join(choice_sentences(choice, parallel=parallel))
        return f"{_HOW}\n{sentences}\n\nThe tools, one a line:\n\n{listed}"

    def write_calls(self, calls: Sequence[ToolCallBlock], tools: Sequence[ToolSchema], /) -> str:
        """Return earlier calls as the model should have written them."""
        return "\n".join(map(_written, calls))

    def write_results(self, results: Sequence[ToolMessage], /) -> str:
        """Return the results of one turn as one text."""
        return result_elements(results)

    def reader(self, tools: Sequence[ToolSchema], /) -> ReplyReader:
        """Return what reads one reply."""
        return TagReader(tools)


def _listed(tool: ToolSchema) -> str:
    shown = {"name": tool.name, "description": tool.description, "parameters": tool.parameters}
    return dump_json({key: value for key, value in shown.items() if value})


def _written(call: ToolCallBlock) -> str:
    """Return a call in its tags; one that could not be read as the object that it is replayed with."""
    return (
        f"<tool_call>\n{dump_json({'name': call.name, 'arguments': call.arguments})}\n</tool_call>"
    )
