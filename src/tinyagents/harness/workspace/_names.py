"""Names of folders and branches for runs, whose ids may be any text."""

import re
from hashlib import sha256

_UNSAFE = re.compile(r"[^A-Za-z0-9_-]+")
_LONGEST = 60
_DIGEST_DIGITS = 16
_DIGESTED = re.compile(rf"-[0-9a-f]{{{_DIGEST_DIGITS}}}\Z")


def safe_name(run_id: str) -> str:
    """Return a name of letters, digits, ``_`` and ``-`` for a run, another one for each id."""
    name = _UNSAFE.sub("_", run_id)[:_LONGEST]
    plain = name == run_id and name and not name.startswith("-")
    # An id that is written as the name of another one looks is no plain one.
    if plain and not _DIGESTED.search(name):
        return name
    digest = sha256(run_id.encode("utf-8", "surrogatepass")).hexdigest()[:_DIGEST_DIGITS]
    return f"{name.lstrip('-_')}-{digest}".lstrip("-")
