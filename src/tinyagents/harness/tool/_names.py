"""Names that every provider takes, derived from the names that the application gave."""

import hashlib
import re
from collections.abc import Sequence

_MAX_LENGTH = 64
_DIGEST_LENGTH = 8
_ODD = re.compile(r"[^A-Za-z0-9_-]+")
_WIRE = re.compile(r"[A-Za-z0-9_-]{1,64}")


def wire_names(names: Sequence[str]) -> dict[str, str]:
    """Return the name to send to a model for each tool name.

    A name that matches ``[A-Za-z0-9_-]{1,64}`` stays as it is. Any other is made to match, and ends
    in a digest of the whole name, so that ``a.b`` and ``a/b`` differ. The result for a name does
    not depend on the process, the order, or on the other names, unless one of them is itself the
    derived name: then the digest is taken once more.
    """
    taken = {name for name in names if _WIRE.fullmatch(name)}
    wire = {name: name for name in taken}
    # Sorted, so that which of two colliding names yields does not depend on their order.
    for name in sorted(set(names) - taken):
        derived, rounds = _derive(name, name), 1
        while derived in taken:
            derived, rounds = _derive(name, f"{name}\n{rounds}"), rounds + 1
        taken.add(derived)
        wire[name] = derived
    return wire


def _derive(name: str, seed: str) -> str:
    digest = hashlib.sha256(seed.encode("utf-8", "surrogatepass")).hexdigest()[:_DIGEST_LENGTH]
    readable = _ODD.sub("_", name).strip("_")[: _MAX_LENGTH - _DIGEST_LENGTH - 1]
    return f"{readable}_{digest}" if readable else f"tool_{digest}"
