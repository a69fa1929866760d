"""Structured output: a typed value instead of text, checked before anybody uses it."""

from ._output import OutputSpec, StructuredStrategy

__all__ = ("OutputSpec", "StructuredStrategy")
