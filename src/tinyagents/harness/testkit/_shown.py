"""Assertions on what must not be seen."""

from collections.abc import Iterable


def assert_never_shown(chunks: Iterable[object], secret: str, *, part: int = 4) -> None:
    """Assert that nothing of a secret is in any chunk, nor in all of them one after the other.

    Args:
        chunks: Texts, or objects whose ``repr`` is looked at: chunks of a stream, events, errors, runs.
        secret: What must not be seen.
        part: So many of its characters in a row are a part of it.

    Raises:
        AssertionError: A part of it is there; the message says in which chunk.
    """
    texts = [chunk if isinstance(chunk, str) else repr(chunk) for chunk in chunks]
    size = min(part, len(secret))
    parts = {secret[at : at + size] for at in range(len(secret) - size + 1)}
    for place, text in enumerate([*texts, "".join(texts)]):
        if seen := sorted(each for each in parts if each in text):
            where = f"chunk {place}" if place < len(texts) else "the chunks together"
            raise AssertionError(f"{where} shows {seen[0]!r}, which is part of the secret")
