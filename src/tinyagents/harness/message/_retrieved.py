"""Text that was looked up for a prompt, marked so that it can be told from what people said."""

from dataclasses import dataclass

from pydantic import JsonValue

from ._blocks import Block, TextBlock

_OWN = "tinyagents"
"""Adapters read the provider data of their own name only: this is no provider's."""


@dataclass(frozen=True, slots=True)
class Retrieved:
    """Where a passage comes from."""

    source: str | None = None
    """Such as an address or a document's name."""
    score: float | None = None
    """How well it fits what was asked; more is better."""


def retrieved_block(
    text: str, *, source: str | None = None, score: float | None = None
) -> TextBlock:
    """Return a passage as a block that models read as text, and that says that it was looked up."""
    facts: dict[str, JsonValue] = {"source": source, "score": score}
    return TextBlock(text=text, provider_data={_OWN: {"retrieved": facts}})


def retrieval_of(block: Block) -> Retrieved | None:
    """Return where a block's passage comes from; ``None`` where it was not looked up."""
    if block.type != "text" or block.provider_data is None:
        return None
    own = block.provider_data.get(_OWN)
    facts = own.get("retrieved") if isinstance(own, dict) else None
    if not isinstance(facts, dict):
        return None
    source, score = facts.get("source"), facts.get("score")
    return Retrieved(
        source if isinstance(source, str) else None,
        float(score) if isinstance(score, int | float) else None,
    )
