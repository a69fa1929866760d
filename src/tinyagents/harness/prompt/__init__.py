"""Prompts: templates with variables, requests laid out for prompt caches, and what became of them."""

from ._builder import PromptBuilder, PromptContent
from ._fingerprint import prompt_fingerprint, resized
from ._layout import LayoutChange, LayoutReason, LayoutVerdict, PromptCacheLayout
from ._messages import FewShot, MessagesPlaceholder, MessagesTemplate, TemplatePart
from ._template import PromptTemplate, TemplateRole

__all__ = (
    "FewShot",
    "LayoutChange",
    "LayoutReason",
    "LayoutVerdict",
    "MessagesPlaceholder",
    "MessagesTemplate",
    "PromptBuilder",
    "PromptCacheLayout",
    "PromptContent",
    "PromptTemplate",
    "TemplatePart",
    "TemplateRole",
    "prompt_fingerprint",
    "resized",
)
