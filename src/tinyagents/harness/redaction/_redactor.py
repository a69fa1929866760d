"""What is done with what detectors find, in texts and in JSON."""

import hashlib
import hmac
import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Literal, NamedTuple, TypeAlias, cast, get_args

from ..errors import ConfigurationError
from ..text import map_texts
from ._credentials import api_key, jwt, private_key, url_credentials
from ._detector import Detector, LiteralDetector, checked_label
from ._identity import credit_card, email, iban, ip_address, mac_address

Strategy: TypeAlias = Literal["redact", "mask", "hash", "block"]
"""``redact`` writes the mask, ``mask`` keeps the last characters, ``hash`` writes a keyed hash, which is
the same for the same text; ``block`` writes the mask, and whoever asked is to go no further."""

_KEPT = 4
_HASH_CHARACTERS = 16


class Match(NamedTuple):
    """Where something was found; overlapping matches are one."""

    start: int
    end: int
    label: str


def all_detectors() -> tuple[Detector, ...]:
    """Return every detector that needs no setting and no extra."""
    return (
        private_key(),
        jwt(),
        api_key(),
        url_credentials(),
        email(),
        credit_card(),
        iban(),
        ip_address(),
        mac_address(),
    )


class Redactor:
    """Takes what its detectors find out of texts, values and messages. Shared freely.

    Matches that overlap count as one, of which the label is that of the first, or of the detector
    that was named first where they begin at the same place. The masks that it writes are never
    matched again. Calling it is :meth:`text`, so that it serves wherever a function of a text does.

    Args:
        detectors: Detectors, and literal texts, which are labelled ``SECRET``; empty texts are left out.
            :func:`all_detectors` by default.
        strategy: What is done with a match.
        strategies: Another strategy for some labels.
        mask: What ``redact`` and ``block`` write; ``{label}`` in it is the label.
        hash_key: The secret of ``hash``.
        keys: Whether the keys of JSON objects are changed as well; a key that is there already is
            numbered.

    Raises:
        ConfigurationError: There is no such strategy or label, ``hash`` has no key, or a mask is found by
            one of the detectors.
    """

    def __init__(
        self,
        detectors: Iterable[Detector | str] | None = None,
        *,
        strategy: Strategy = "redact",
        strategies: Mapping[str, Strategy] | None = None,
        mask: str = "[REDACTED]",
        hash_key: bytes | str | None = None,
        keys: bool = False,
    ) -> None:
        self.detectors: tuple[Detector, ...] = _as_detectors(detectors)
        labels = dict.fromkeys(detector.label for detector in self.detectors)
        chosen = dict.fromkeys(labels, strategy)
        if unknown := (strategies or {}).keys() - labels.keys():
            names = ", ".join(f"`{label}`" for label in sorted(unknown))
            raise ConfigurationError(f"no detector finds {names}: there are {', '.join(labels)}")
        chosen.update(strategies or {})
        for each in chosen.values():
            if each not in get_args(Strategy):
                raise ConfigurationError(
                    f"there is no strategy `{each}`: choose from {', '.join(get_args(Strategy))}"
                )
        if "hash" in chosen.values() and not hash_key:
            raise ConfigurationError(
                "the strategy `hash` needs a `hash_key`: without one, whoever guesses the text can check it"
            )
        if not mask:
            raise ConfigurationError("`mask` is the text to write, and must not be empty")
        self._strategies = chosen
        self._key = hash_key.encode() if isinstance(hash_key, str) else hash_key or b""
        self._masks = {label: mask.replace("{label}", label) for label in chosen}
        self._keys = keys
        written = {*self._masks.values()}
        self._own = LiteralDetector(written)
        self._shaped = re.compile(
            rf"\[(?:{'|'.join(chosen) or '(?!)'}):(?:\*{{4}}[^\]\s]{{0,{_KEPT}}}"
            rf"|[0-9a-f]{{{_HASH_CHARACTERS}}})\]"
        )
        self._shapes = bool({"mask", "hash"} & set(chosen.values()))

    def __repr__(self) -> str:
        chosen = ", ".join(f"{label}={way}" for label, way in self._strategies.items())
        return f"Redactor({chosen})"

    def __call__(self, text: str) -> str:
        return self.text(text)

    def text(self, text: str, found: "Counter[str] | None" = None) -> str:
        """Return the text without what was found.

        Args:
            text: Any text.
            found: Counts what was replaced, by label.
        """
        matches = self.find(text)
        return self._replaced(text, matches, found) if matches else text

    def json(self, value: Any, found: "Counter[str] | None" = None) -> Any:
        """Return a JSON value in which every text is without what was found; itself if nothing is.

        A number in whose digits something is found becomes a text.

        Args:
            value: Any JSON value; what is in it besides strings, lists and objects stays.
            found: Counts what was replaced, by label.
        """
        cleaned = map_texts(value, lambda text: self.text(text, found), numbers=True)
        return self._with_keys(cleaned, found) if self._keys else cleaned

    def _with_keys(self, value: Any, found: "Counter[str] | None") -> Any:
        if isinstance(value, list | tuple):
            return [self._with_keys(item, found) for item in cast("Sequence[Any]", value)]
        if not isinstance(value, Mapping):
            return value
        items = cast("Mapping[str, Any]", value)
        cleaned: dict[str, Any] = {}
        for key, item in items.items():
            new = name = self.text(key, found)
            count = 2
            while name != key and (name in cleaned or name in items):
                name, count = f"{new} {count}", count + 1
            cleaned[name] = self._with_keys(item, found)
        return cleaned

    def find(self, text: str) -> list[Match]:
        """Return what is found, in order, without overlaps and without the masks."""
        return self.find_from(text, 0)

    def find_from(self, text: str, start: int) -> list[Match]:
        """Return what is found from ``start`` on, where what stands before it is context."""
        if not text:
            return []
        found = [
            (begin, place, end)
            for place, detector in enumerate(self.detectors)
            for begin, end in detector.find(text, start)
        ]
        if not found:
            return []
        found.sort()
        masks = self._mask_spans(text)
        merged: list[Match] = []
        for begin, place, end in found:
            if any(first <= begin and end <= last for first, last in masks):
                continue
            if merged and begin < merged[-1].end:
                last_match = merged[-1]
                merged[-1] = last_match._replace(end=max(end, last_match.end))
            else:
                merged.append(Match(begin, end, self.detectors[place].label))
        return [self._around_masks(match, masks) for match in merged]

    def _mask_spans(self, text: str) -> list[tuple[int, int]]:
        spans = list(self._own.find(text))
        if self._shapes:
            spans += [match.span() for match in self._shaped.finditer(text)]
        return spans

    @staticmethod
    def _around_masks(match: Match, masks: list[tuple[int, int]]) -> Match:
        """Take a mask that a match reaches into with it, so that no half of one is left."""
        start, end = match.start, match.end
        for first, last in masks:
            if first < end and start < last:
                start, end = min(start, first), max(end, last)
        return Match(start, end, match.label)

    def open_from(self, text: str, start: int = 0) -> int:
        """Return from where on it is not yet certain what a text that goes on will have."""
        first = min(detector.open_from(text, start) for detector in (*self.detectors, self._own))
        if self._shapes:
            opening = text.rfind("[", max(start, len(text) - 64))
            if opening >= 0 and "]" not in text[opening:]:
                first = min(first, opening)
        return first

    def replacement(self, match: Match, text: str) -> str:
        """Return what is written in a match's place."""
        secret = text[match.start : match.end]
        match self._strategies[match.label]:
            case "mask":
                kept = "".join(each for each in secret if each.isalnum())
                kept = kept[-min(_KEPT, len(kept) // 4) :] if len(kept) >= _KEPT else ""
                return f"[{match.label}:****{kept}]"
            case "hash":
                digest = hmac.new(self._key, secret.encode("utf-8", "replace"), hashlib.sha256)
                return f"[{match.label}:{digest.hexdigest()[:_HASH_CHARACTERS]}]"
            case _:
                return self._masks[match.label]

    def blocked(self, found: Mapping[str, int]) -> tuple[str, ...]:
        """Return the labels among those that were found for which there is no going further."""
        return tuple(label for label in found if self._strategies.get(label) == "block")

    def _replaced(self, text: str, matches: Sequence[Match], found: "Counter[str] | None") -> str:
        parts: list[str] = []
        done = 0
        for match in matches:
            parts += (text[done : match.start], self.replacement(match, text))
            done = match.end
            if found is not None:
                found[match.label] += 1
        parts.append(text[done:])
        return "".join(parts)


def _as_detectors(given: Iterable[Detector | str] | None) -> tuple[Detector, ...]:
    if given is None:
        return all_detectors()
    if isinstance(given, str):
        raise ConfigurationError("`detectors` is a list: pass `[text]` for one literal text")
    items = list(given)
    literals = [item for item in items if isinstance(item, str)]
    detectors: list[Detector] = [item for item in items if not isinstance(item, str)]
    for detector in detectors:
        if not callable(getattr(detector, "find", None)):
            raise ConfigurationError(f"{detector!r} is no detector: it has no `find`")
        checked_label(detector.label)
    if any(literals):
        detectors.insert(0, LiteralDetector(literals))
    return tuple(detectors)
