"""What a path says by itself, before anything is opened."""

import os
from pathlib import PurePath

from ..errors import UnsafePathError

_LONGEST_PATH = 4_096
_LONGEST_SHOWN = 200


def parts_inside(root: str, path: str, given: str) -> list[str]:
    """Return the parts of a path below the root, `..` among them.

    Args:
        root: An absolute path.
        path: Relative to the root, or an absolute path that begins with it.
        given: What errors call it: a link's target is not what anybody gave.
    """
    if not path or "\0" in path:
        raise unsafe("name", given, "is empty or holds NUL")
    try:
        length = len(os.fsencode(path))
    except UnicodeEncodeError as exc:
        raise unsafe("name", given, "holds half of a character") from exc
    if length > _LONGEST_PATH:
        raise unsafe("name", given, "is too long")
    pure = PurePath(path)
    if pure.anchor:
        for start in (root, os.path.realpath(root)):
            if pure.is_relative_to(start):
                return list(pure.relative_to(start).parts)
        raise unsafe("outside", given, "is outside the root")
    return list(pure.parts)


def check_stays_inside(parts: list[str], given: str) -> None:
    """Refuse a path that climbs out of the root by its `..` alone, wherever links lead."""
    depth = 0
    for part in parts:
        depth += -1 if part == os.pardir else 1
        if depth < 0:
            raise unsafe("outside", given, "is outside the root")


def unsafe(reason: str, given: str, why: str) -> UnsafePathError:
    """Return the error that says what is wrong with a path."""
    text = shown(given)
    return UnsafePathError(f"the path {text!r} {why}", path=text, reason=reason)


def shown(given: str) -> str:
    """Return a path short enough for an error."""
    return given if len(given) <= _LONGEST_SHOWN else f"{given[:_LONGEST_SHOWN]}…"
