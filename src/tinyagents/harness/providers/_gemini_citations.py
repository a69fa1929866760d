"""The sources of a Gemini answer, from its grounding and its citations."""

from collections.abc import Iterator, Mapping
from typing import Any

from ..message import CitationBlock
from ._json import as_integer, as_list, as_object, as_text


def citations(text: str, candidate: Mapping[str, Any]) -> Iterator[CitationBlock]:
    """Yield a block for each source of each cited passage; without passages, for each source.

    Args:
        text: The answer's text, which positions refer to.
        candidate: Its ``groundingMetadata`` and ``citationMetadata``.
    """
    yield from _grounded(text, as_object(candidate.get("groundingMetadata")) or {})
    cited = as_object(candidate.get("citationMetadata")) or {}
    # Vertex has another name for the list.
    for source in as_list(cited.get("citationSources") or cited.get("citations")) or ():
        known = as_object(source) or {}
        start, end = _span(text, known)
        url, title = as_text(known.get("uri")), as_text(known.get("title"))
        yield CitationBlock(url=url, title=title, start=start, end=end)


def _grounded(text: str, grounding: Mapping[str, Any]) -> Iterator[CitationBlock]:
    chunks = [as_object(chunk) or {} for chunk in as_list(grounding.get("groundingChunks")) or ()]
    supports = as_list(grounding.get("groundingSupports"))
    if not supports:
        for chunk in chunks:
            yield _source(chunk, None, None)
        return
    for support in map(as_object, supports):
        if support is None:
            continue
        start, end = _span(text, as_object(support.get("segment")) or {})
        for index in map(as_integer, as_list(support.get("groundingChunkIndices")) or ()):
            if index is not None and 0 <= index < len(chunks):
                yield _source(chunks[index], start, end)


def _source(chunk: Mapping[str, Any], start: int | None, end: int | None) -> CitationBlock:
    """Return the block of a source: a page, a document of a store, or a place on a map."""
    facts = next(filter(None, map(as_object, chunk.values())), dict[str, Any]())
    return CitationBlock(
        url=as_text(facts.get("uri")),
        title=as_text(facts.get("title")),
        text=as_text(facts.get("text")),
        start=start,
        end=end,
    )


def _span(text: str, segment: Mapping[str, Any]) -> tuple[int | None, int | None]:
    """Return a segment in characters; it counts bytes, of its own part when there are several."""
    last = as_integer(segment.get("endIndex"))
    if last is None:
        return None, None
    encoded = text.encode()
    first = as_integer(segment.get("startIndex")) or 0
    start = len(encoded[: max(0, first)].decode("utf-8", "ignore"))
    end = len(encoded[: max(0, last)].decode("utf-8", "ignore"))
    said = as_text(segment.get("text"))
    if said is None or text[start:end] == said:
        return start, end
    found = text.find(said)
    return (None, None) if found < 0 else (found, found + len(said))
