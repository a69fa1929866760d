"""What a model is told from a docstring. Read through a tool, as users do."""

from collections.abc import Callable
from typing import Any

import pytest

from tinyagents.harness.tool import Tool, tool


def google(city: str, days: int = 1, units: str = "metric") -> None:
    """Forecast for a city.

    Only towns of more than 1000 people: smaller ones
    are not known.

    Args:
        city: City name,
            in English.
        days (int, optional): How many days: 1 to 7.
        units: Either of

            metric and imperial.

    Returns:
        One line a day.

    Raises:
        ValueError: Never told to a model.
    """


def numpy(city: str, days: int = 1, units: str = "metric") -> None:
    """Forecast for a city.

    Only towns of more than 1000 people: smaller ones
    are not known.

    Parameters
    ----------
    city : str
        City name,
        in English.
    days : int, optional
        How many days: 1 to 7.
    units
        Either of

        metric and imperial.

    Returns
    -------
    str
        One line a day.

    Raises
    ------
    ValueError
        Never told to a model.
    """


def sphinx(city: str, days: int = 1, units: str = "metric") -> None:
    """Forecast for a city.

    Only towns of more than 1000 people: smaller ones
    are not known.

    :param city: City name,
        in English.
    :param int days: How many days: 1 to 7.
    :type city: str
    :param units: Either of

        metric and imperial.
    :returns: One line a day.
    :raises ValueError: Never told
        to a model.
    """


def described(made: Tool) -> dict[str, Any]:
    properties: dict[str, Any] = made.schema.parameters["properties"]  # type: ignore[assignment]
    return {name: schema.get("description") for name, schema in properties.items()}


@pytest.mark.parametrize("function", [google, numpy, sphinx], ids=lambda f: f.__name__)
def test_the_common_styles_say_the_same(function: Callable[..., Any]) -> None:
    made = tool(function)
    assert described(made) == {
        "city": "City name, in English.",
        "days": "How many days: 1 to 7.",
        "units": "Either of metric and imperial.",
    }
    assert made.description.startswith(
        "Forecast for a city.\n\nOnly towns of more than 1000 people: smaller ones\nare not known."
    )
    assert "One line a day." in made.description
    assert "City name" not in made.description
    assert "Never told" not in made.description
    assert "\n\n\n" not in made.description


def test_text_after_the_parameters_stays() -> None:
    @tool
    def f(a: int) -> None:
        """Do it.

        Args:
            a: A number.

        Costs a cent.
        """

    assert f.description == "Do it.\n\nCosts a cent."
    assert described(f) == {"a": "A number."}


def test_several_numpy_parameters_can_share_a_description() -> None:
    @tool
    def f(x: int, y: int) -> None:
        """Do it.

        Parameters
        ----------
        x, y : int
            Where.
        """

    assert described(f) == {"x": "Where.", "y": "Where."}


def test_epytext_fields_are_read_as_well() -> None:
    @tool
    def f(a: int) -> None:
        """Do it.

        @param a: A number.
        """

    assert (f.description, described(f)) == ("Do it.", {"a": "A number."})


def test_prose_that_looks_like_a_section_is_left_alone() -> None:
    @tool
    def f(a: int) -> None:
        """Do it.

        Warning: a is not checked.
        Args: none of them matter.

        One thing:
        :the rest: is a role.
        """

    assert f.description == (
        "Do it.\n\nWarning: a is not checked.\nArgs: none of them matter.\n\n"
        "One thing:\n:the rest: is a role."
    )
    assert described(f) == {"a": None}


def test_an_empty_section_describes_nothing() -> None:
    @tool
    def f(a: int) -> None:
        """Do it.

        Parameters
        ----------
        """

    assert (f.description, described(f)) == ("Do it.", {"a": None})


def test_names_that_are_no_parameters_are_ignored() -> None:
    @tool
    def f(a: int) -> None:
        """Do it.

        Args:
            b: Something else.
        """

    assert described(f) == {"a": None}


@pytest.mark.parametrize("text", [None, "", "   \n  "])
def test_a_tool_needs_no_docstring(text: str | None) -> None:
    def f(a: int) -> None: ...

    f.__doc__ = text
    assert tool(f).description == ""


def test_a_description_of_ones_own_replaces_the_docstring_and_not_the_parameters() -> None:
    @tool(description="Something else.")
    def f(a: int) -> None:
        """Do it.

        Args:
            a: A number.
        """

    assert (f.description, described(f)) == ("Something else.", {"a": "A number."})
