"""What a model remembers of a server's refusals, and how one call is led around them."""

import logging
from collections.abc import Callable, Iterable, Set as AbstractSet
from dataclasses import replace
from threading import Lock
from typing import Final, Generic, TypeVar

from ..errors import BadRequestError
from ..model import FittedRequest, ModelRequest
from ._presets import ServerPreset
from ._shapes import Adaptation, Shape, recognised, without, would_have

_log = logging.getLogger("tinyagents.providers")


class Adaptations:
    """What a model has given up so far: at most one of each shape. Shared between threads."""

    __slots__ = ("_lock", "known")

    def __init__(self) -> None:
        self._lock = Lock()
        self.known: tuple[Adaptation, ...] = ()

    def add(self, found: Iterable[Adaptation], *, server: str) -> None:
        """Remember what a server refused; each is logged once, at ``WARNING``."""
        with self._lock:
            known = {one.shape for one in self.known}
            new = tuple(one for one in found if one.shape not in known)
            self.known = (*self.known, *new)
        for one in new:
            _log.warning("%s: %s (it said: %s)", server, one.notice, one.refusal)


class StreamedServers:
    """Base URLs whose servers answer no plain call, as far as this process has found out.

    Bounded: of too many the oldest is forgotten, and found out again. Shared between threads.
    """

    MOST: Final = 1_024

    def __init__(self) -> None:
        self._lock = Lock()
        self._known: dict[str, Adaptation] = {}

    def get(self, base_url: str) -> Adaptation | None:
        """Return what was found out of a server."""
        return self._known.get(base_url)

    def add(self, base_url: str, found: Adaptation) -> None:
        """Remember a server, by its URL without credentials and query."""
        with self._lock:
            self._known[base_url] = found
            if len(self._known) > self.MOST:
                del self._known[next(iter(self._known))]


STREAMED_SERVERS: Final = StreamedServers()
"""For all models of the process: whoever is refused spares the others the same."""


NOTHING: Final[frozenset[Shape]] = frozenset()


class Attempt:
    """One call while it is adapted: what it has given up, and what it was refused for.

    Args:
        known: What need not be found out any more.
        fitted: The request, fitted to what is known of the model.
        stream: The caller wants a stream.
    """

    __slots__ = ("_fitted", "_known", "_stream", "found", "refusal", "request", "shapes")

    def __init__(
        self, known: tuple[Adaptation, ...], fitted: FittedRequest, *, stream: bool
    ) -> None:
        self._known = known
        self._fitted = fitted.notices
        self.request: ModelRequest = fitted.request
        self._stream = stream
        self.found: tuple[Adaptation, ...] = ()
        """What this call itself has found out."""
        self.shapes: frozenset[Shape] = frozenset(one.shape for one in known) if known else NOTHING
        self.refusal: BadRequestError | None = None
        """The first one."""

    def give_up(self, found: Adaptation) -> None:
        """Do without one more shape."""
        self.found = (*self.found, found)
        self.shapes = self.shapes.union((found.shape,))

    def notices(self) -> tuple[str, ...]:
        """Return what is said of how the request was fitted, and of each shape it would have had."""
        if not self.shapes:
            return self._fitted
        moot: set[Shape] = set()
        if self._stream:
            moot.add("plain_call")
        elif "plain_call" not in self.shapes:
            moot.add("stream_options")
        known = (
            one
            for one in self._known
            if one.shape not in moot and would_have(one.shape, self.request, self.request.settings)
        )
        return (*self._fitted, *(one.notice for one in (*known, *self.found)))

    def after(self, refusal: BadRequestError, body: bytes, able: AbstractSet[Shape]) -> None:
        """Give up what a refusal is about.

        Raises:
            BadRequestError: It is about nothing that can be given up. If the call had given something
                up for it, the first refusal is raised, from the one that came after; a prompt that is
                too long is told itself.
        """
        found = recognised(refusal, body, able - self.shapes)
        if found is not None:
            self.give_up(found)
            self.refusal = self.refusal or refusal
            return
        if self.refusal is None or type(refusal) is not BadRequestError:
            raise refusal
        raise self.refusal from refusal


_Preset = TypeVar("_Preset", bound=ServerPreset)
_Encoder = TypeVar("_Encoder")


class Variants(Generic[_Preset, _Encoder]):
    """The encoders of one model, by what they do without. Shared between threads and event loops.

    Args:
        preset: What is known of the server from the start.
        encoder: Makes the encoder of a preset.
    """

    __slots__ = ("_encoder", "_made", "_preset")

    def __init__(self, preset: _Preset, encoder: Callable[[_Preset], _Encoder]) -> None:
        self._preset = preset
        self._encoder = encoder
        self._made: dict[frozenset[Shape], tuple[_Preset, _Encoder]] = {}

    def of(self, given_up: frozenset[Shape]) -> tuple[_Preset, _Encoder]:
        """Return the preset without some shapes, and its encoder."""
        made = self._made.get(given_up)
        if made is None:
            changes = without(given_up)
            preset = replace(self._preset, **changes) if changes else self._preset
            made = self._made.setdefault(given_up, (preset, self._encoder(preset)))
        return made
