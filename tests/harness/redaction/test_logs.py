"""Log records and exceptions without what was found in them."""

import io
import logging
import traceback
from collections.abc import Iterator

import pytest
from pydantic import BaseModel, ValidationError

from tinyagents.harness.errors import BadRequestError
from tinyagents.harness.redaction import RedactingFilter, Redactor, redact_error
from tinyagents.testkit import assert_never_shown

SECRET = "zork77@quux9.wtf"


@pytest.fixture
def log() -> Iterator[tuple[logging.Logger, io.StringIO]]:
    written = io.StringIO()
    handler = logging.StreamHandler(written)
    handler.setFormatter(logging.Formatter("%(message)s %(extra_one)s", defaults={"extra_one": ""}))
    handler.addFilter(RedactingFilter(Redactor()))
    logger = logging.Logger("test")  # noqa: LOG001 - one of its own, that no other test sees
    logger.addHandler(handler)
    yield logger, written
    handler.close()


def test_messages_values_and_tracebacks_are_cleaned(
    log: tuple[logging.Logger, io.StringIO],
) -> None:
    logger, written = log
    try:
        raise ValueError(f"no {SECRET}")
    except ValueError:
        logger.exception("for %s", SECRET, extra={"extra_one": SECRET})
    text = written.getvalue()
    assert text.startswith("for [REDACTED] [REDACTED]\n")
    assert "ValueError: no [REDACTED]" in text
    assert_never_shown([text.replace("SECRET", "")], SECRET)


def test_a_record_that_cannot_be_formatted_shows_no_values(
    log: tuple[logging.Logger, io.StringIO],
) -> None:
    logger, written = log
    logger.warning("for %d", SECRET)
    assert "cannot be formatted" in written.getvalue()
    assert_never_shown([written.getvalue()], SECRET)


def test_an_error_is_cleaned_in_place_with_its_attributes() -> None:
    error = BadRequestError(f"bad {SECRET}", raw={"echo": [f"to {SECRET}"]})
    assert redact_error(Redactor(), error) is error
    assert (str(error), error.raw) == ("bad [REDACTED]", {"echo": ["to [REDACTED]"]})


def test_a_cause_whose_text_cannot_be_changed_is_cut_off() -> None:
    class Form(BaseModel):
        n: int

    error = ValueError("bad form")
    try:
        Form.model_validate({"n": SECRET})
    except ValidationError as exc:
        error.__cause__ = exc
    assert redact_error(Redactor(), error) is error
    assert error.__cause__ is None


def test_a_circle_of_causes_and_a_group_are_cleaned() -> None:
    first, second = ValueError(SECRET), ValueError(SECRET)
    first.__context__, second.__context__ = second, first
    group = ExceptionGroup("several", [first])
    assert redact_error(Redactor(), group) is group
    assert (str(first), str(second)) == ("[REDACTED]", "[REDACTED]")


def test_an_error_of_a_file_keeps_its_class_and_loses_the_name() -> None:
    error = FileNotFoundError(2, "no such file", f"/home/{SECRET}")
    assert redact_error(Redactor(), error) is error
    assert_never_shown([str(error), error.filename], SECRET)


def test_a_cause_keeps_no_run_of_its_own() -> None:
    inner, outer = BadRequestError("bad"), ValueError("failed")
    inner.run = "a transcript"  # type: ignore[assignment]
    outer.__cause__ = inner
    redact_error(Redactor(), outer)
    assert inner.run is None


def test_a_group_goes_as_a_whole_where_one_in_it_cannot_be_changed() -> None:
    class Strange(Exception):
        def __str__(self) -> str:
            return f"always {SECRET}"

    group = ExceptionGroup("several", [ValueError("fine"), ExceptionGroup("more", [Strange()])])
    shown = redact_error(Redactor(), group)
    assert_never_shown(traceback.format_exception(shown), SECRET)
