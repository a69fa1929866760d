"""JSON Schema: described as a model should read it, compiled into checks, and looked into."""

from ._check import SchemaCheck
from ._describe import describe, object_schema, without_properties
from ._problems import explain_errors, kind_of, unexpected_problem
from ._walk import Place, parts, rebuilt, referred, rooted, variants

__all__ = (
    "Place",
    "SchemaCheck",
    "describe",
    "explain_errors",
    "kind_of",
    "object_schema",
    "parts",
    "rebuilt",
    "referred",
    "rooted",
    "unexpected_problem",
    "variants",
    "without_properties",
)
