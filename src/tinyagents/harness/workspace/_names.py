"""Names of folders and branches for runs, whose ids may be any text."""

import re
from hashlib import sha256

_UNSAFE = re.compile(r"[^A-Za-z0-9_-]+")
_LONGEST = 60


def safe_name(run_id: str) -> str:
    """Return a name of letters, digits, ``_`` and ``-`` for a run, another one for each id."""
    name = _UNSAFE.sub("_", run_id)[:_LONGEST]
    if name == run_id and name and not name.startswith("-"):
        return name
    digest = sha256(run_id.encode("utf-8", "surrogatepass")).hexdigest()[:12]
    return f"{name.lstrip('-_')}-{digest}".lstrip("-")
