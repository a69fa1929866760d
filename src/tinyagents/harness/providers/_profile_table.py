"""What is known of models by their names, as a table that a caller can add to.

The built-in rows are data: ``known_models.json``, each with its source and its date. Nothing is ever
downloaded.
"""

from collections.abc import Iterable, Iterator, Mapping
from datetime import date
from fnmatch import fnmatchcase
from functools import cache
from importlib.resources import files
from os import PathLike
from pathlib import Path
from typing import Any, Final, TypeAlias

from pydantic import BaseModel, Field, ValidationError, field_validator

from ..errors import ConfigurationError
from ..model import ModelProfile

_BUILT_IN: Final = "known_models.json"
_LARGEST_FILE: Final = 8 * 1024 * 1024
"""Bytes of a table that is read from a file."""


class KnownModel(ModelProfile, frozen=True, extra="forbid", defer_build=True):
    """A row of the table: a profile of which only the fields that are set say anything."""

    match: tuple[str, ...] = Field(min_length=1)
    """Globs of names in lower case, of which one must fit: the whole name, or what follows its
    last slash."""
    provider: str = ""
    """The only provider of which the row holds; empty: of every one."""
    # From a file: a size of nothing would make every request wrong.
    max_input_tokens: int | None = Field(default=None, ge=1)
    max_output_tokens: int | None = Field(default=None, ge=1)
    priced_at: tuple[str, ...] = ()
    """The providers whose price ``pricing`` is; empty: of every one."""
    note: str = ""
    source: str = ""
    """Where the facts are from: an address."""
    as_of: date | None = None
    """When they were read there."""

    @field_validator("match", mode="before")
    @classmethod
    def _one_or_many(cls, value: object) -> object:
        return (value,) if isinstance(value, str) else value

    def fits(self, names: Iterable[str], provider: str) -> bool:
        """Whether the row is of a model with one of these names."""
        if self.provider not in ("", provider):
            return False
        return any(fnmatchcase(name, glob.lower()) for name in names for glob in self.match)

    def facts(self, provider: str) -> dict[str, Any]:
        """Return the fields of a profile that the row sets."""
        set_here = self.model_fields_set & _FACTS
        if self.priced_at and provider not in self.priced_at:
            set_here -= {"pricing"}
        return {name: getattr(self, name) for name in set_here}


_FACTS: Final = frozenset(ModelProfile.model_fields) - {"provider", "model", "known"}
_OF_A_SERVICE: Final = frozenset(
    {"max_input_tokens", "max_output_tokens", "input_modalities", "pricing"}
)
"""What a runtime on the user's machine decides by itself, whatever the model could do."""


class _File(BaseModel, frozen=True, extra="forbid", defer_build=True):
    models: tuple[KnownModel, ...]


_Layer: TypeAlias = tuple[KnownModel, ...]


class ProfileTable:
    """Rows of known models, in layers. Immutable.

    In each layer the first row that fits a name counts, so the special stands before the general.
    What a layer sets stands above what the layers beneath it set, field by field.

    Args:
        layers: The rows of each layer, the lowest first.
    """

    __slots__ = ("_layers",)

    def __init__(self, *layers: Iterable[KnownModel]) -> None:
        self._layers = tuple(tuple(rows) for rows in layers)

    def __repr__(self) -> str:
        return f"ProfileTable({', '.join(f'<{len(rows)} rows>' for rows in self._layers)})"

    @classmethod
    def built_in(cls) -> "ProfileTable":
        """Return the table that comes with the package: one layer."""
        return cls(_built_in())

    @property
    def models(self) -> tuple[KnownModel, ...]:
        """All rows, those of the lowest layer first."""
        return tuple(row for layer in self._layers for row in layer)

    def with_models(self, *rows: KnownModel) -> "ProfileTable":
        """Return a table with one more layer, above those of this one."""
        return ProfileTable(*self._layers, rows)

    def find(self, model: str, provider: str = "") -> KnownModel | None:
        """Return the uppermost row that fits a name; ``None``: the model is not known."""
        found = [row for _, row in self._rows(model, provider)]
        return found[-1] if found else None

    def facts(self, model: str, provider: str = "", *, local: bool = False) -> dict[str, Any]:
        """Return the fields of a profile that are known of a model; empty when none is.

        Args:
            model: The provider's name for the model.
            provider: The provider.
            local: It is a runtime on the user's machine, which loads models as it is told: their
                sizes, prices and modalities count only where a row of the caller's says them.
        """
        known: dict[str, Any] = {}
        for layer, row in self._rows(model, provider):
            facts = row.facts(provider)
            if local and layer is _built_in():
                facts = {name: fact for name, fact in facts.items() if name not in _OF_A_SERVICE}
            known |= facts
        return known

    def _rows(self, model: str, provider: str) -> Iterator[tuple[_Layer, KnownModel]]:
        """Yield each layer with its row that fits a name, the lowest first."""
        lowered = model.lower()
        names = (lowered, lowered.rpartition("/")[2])
        for layer in self._layers:
            for row in layer:
                if row.fits(names, provider):
                    yield layer, row
                    break


def load_profiles(
    path: str | PathLike[str], *, beneath: ProfileTable | None = None
) -> ProfileTable:
    """Read a JSON file of rows: ``{"models": [{"match": "my-model*", "max_input_tokens": 32768}]}``.

    A row has the fields of :class:`KnownModel`. What it sets stands above the built-in table, field
    by field.

    Args:
        path: The file; at most 8 MiB.
        beneath: The table to add to; the built-in one when not given.

    Raises:
        ConfigurationError: The file cannot be read, or a row is wrong; the message says where.
    """
    try:
        with Path(path).open("rb") as file:
            data = file.read(_LARGEST_FILE + 1)
    except OSError as exc:
        raise ConfigurationError(f"the model profiles in `{path}` cannot be read: {exc}") from exc
    if len(data) > _LARGEST_FILE:
        raise ConfigurationError(f"the model profiles in `{path}` take more than 8 MiB")
    return (beneath or ProfileTable.built_in()).with_models(*_parsed(data, str(path)))


@cache
def _built_in() -> _Layer:
    return _parsed(files(__name__.rpartition(".")[0]).joinpath(_BUILT_IN).read_bytes(), _BUILT_IN)


def _parsed(data: bytes, where: str) -> _Layer:
    try:
        return _File.model_validate_json(data).models
    except ValidationError as exc:
        first: Mapping[str, Any] = exc.errors(include_url=False, include_input=False)[0]
        place = ".".join(str(step) for step in first["loc"]) or "the file"
        raise ConfigurationError(
            f"the model profiles in `{where}` are wrong at `{place}`: {first['msg']} "
            f"({exc.error_count()} problem(s) in all)"
        ) from exc
