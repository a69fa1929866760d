"""Where the texts are while their run goes on."""

import hashlib
from collections import OrderedDict
from dataclasses import dataclass, field
from typing import Protocol

from ..errors import ConfigurationError

_DIGEST_DIGITS = 6


class HandoffStore(Protocol):
    """Keeps the oversized results of runs."""

    async def put(self, run_id: str, text: str) -> str:
        """Keep a text for a run and return its id, ``res_`` and more, which names no other text."""
        ...

    async def get(self, run_id: str, result_id: str) -> str | None:
        """Return a text of that run; ``None`` for an id that is not known, or no more."""
        ...


@dataclass(slots=True)
class _Kept:
    """The texts of one run, the oldest first."""

    texts: dict[str, str] = field(default_factory=dict[str, str])
    count: int = 0


class InMemoryHandoffStore:
    """Keeps texts in this process: the last few of each of the last runs.

    The id of a text is a hexadecimal counter and digits of the text's SHA-256: in a run that is
    resumed in another process, where the texts are gone, an old id is unknown and never another text's.

    Args:
        max_entries: How many texts of a run; the oldest goes first.
        max_runs: How many runs; the one that was used longest ago goes first.
        max_characters: How long all texts together may be; other runs make room for one that has more.

    Raises:
        ConfigurationError: One of them is not above 0.
    """

    def __init__(
        self, max_entries: int = 8, max_runs: int = 64, max_characters: int = 128 * 2**20
    ) -> None:
        if min(max_entries, max_runs, max_characters) < 1:
            raise ConfigurationError(
                "`max_entries`, `max_runs` and `max_characters` must be above 0"
            )
        self._max_entries = max_entries
        self._max_runs = max_runs
        self._max_characters = max_characters
        self._runs: OrderedDict[str, _Kept] = OrderedDict()

    async def put(self, run_id: str, text: str) -> str:
        """Keep a text for a run and return its id."""
        kept = self._runs.setdefault(run_id, _Kept())
        self._runs.move_to_end(run_id)
        kept.count += 1
        digest = hashlib.sha256(text.encode()).hexdigest()[:_DIGEST_DIGITS]
        result_id = f"res_{kept.count:x}_{digest}"
        kept.texts[result_id] = text
        if len(kept.texts) > self._max_entries:
            del kept.texts[next(iter(kept.texts))]
        while len(self._runs) > 1 and self._is_full():
            self._runs.popitem(last=False)
        return result_id

    async def get(self, run_id: str, result_id: str) -> str | None:
        """Return a text of that run; ``None`` for an id that is not known, or no more."""
        kept = self._runs.get(run_id)
        if kept is None:
            return None
        self._runs.move_to_end(run_id)
        return kept.texts.get(result_id)

    def _is_full(self) -> bool:
        length = sum(len(text) for kept in self._runs.values() for text in kept.texts.values())
        return len(self._runs) > self._max_runs or length > self._max_characters
