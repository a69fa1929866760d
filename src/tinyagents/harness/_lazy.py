"""Names of a package that are loaded at their first use."""

import sys
from collections.abc import Callable, Collection, Mapping
from importlib import import_module


def names(
    package: str, homes: Mapping[str, Collection[str]]
) -> tuple[Callable[[str], object], Callable[[], list[str]]]:
    """Return the ``__getattr__`` and the ``__dir__`` of a package.

    Define them where type checkers do not look: they would take any name for one of the package.

    Args:
        package: Its ``__name__``.
        homes: For each of its modules, the names that come from there.
    """
    home_of = {name: home for home, names in homes.items() for name in names}
    loaded = vars(sys.modules[package])

    def get(name: str) -> object:
        home = home_of.get(name)
        if home is None:
            raise AttributeError(f"module `{package}` has no attribute `{name}`")
        loaded[name] = value = getattr(import_module(f".{home}", package), name)
        return value

    def listed() -> list[str]:
        return sorted({*loaded, *home_of})

    return get, listed
