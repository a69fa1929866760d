"""Tools, and reading a reply in pieces, for the tests of the dialects."""

from collections.abc import Sequence

from tinyagents.harness.model import ToolSchema
from tinyagents.harness.text import JsonObject
from tinyagents.harness.tool_calling import ReplyPiece, TextCall, ToolDialect


def schema(name: str, properties: JsonObject | None = None, *required: str) -> ToolSchema:
    parameters: JsonObject = {"type": "object", "properties": properties or {}}
    if required:
        parameters["required"] = list(required)
    return ToolSchema(name=name, description=f"Does {name}.", parameters=parameters)


SEARCH = schema("search", {"query": {"type": "string"}, "limit": {"type": "integer"}}, "query")
NOW = schema("now")
TOOLS = (SEARCH, NOW)


def read(
    dialect: ToolDialect, text: str, *cuts: int, tools: Sequence[ToolSchema] = TOOLS
) -> list[ReplyPiece]:
    """Read a reply that is cut at these places, with texts that follow each other joined."""
    reader = dialect.reader(tools)
    places = [0, *sorted(cuts), len(text)]
    pieces: list[ReplyPiece] = []
    for start, end in zip(places, places[1:], strict=False):
        pieces += reader.feed(text[start:end])
    pieces += reader.finish()
    return joined(pieces)


def joined(pieces: Sequence[ReplyPiece]) -> list[ReplyPiece]:
    together: list[ReplyPiece] = []
    for piece in pieces:
        if isinstance(piece, str) and together and isinstance(together[-1], str):
            together[-1] += piece
        else:
            together.append(piece)
    return together


def calls_of(pieces: Sequence[ReplyPiece]) -> list[TextCall]:
    return [piece for piece in pieces if isinstance(piece, TextCall)]


def text_of(pieces: Sequence[ReplyPiece]) -> str:
    return "".join(piece for piece in pieces if isinstance(piece, str))
