"""The tools that tell the time, as rows of expressions and what they mean."""

from datetime import UTC, datetime
from typing import Any

import orjson
import pytest

from tests.harness.tools.runs import result_of
from tinyagents import ToolMessage
from tinyagents.harness.errors import ConfigurationError
from tinyagents.harness.tools import time_tools
from tinyagents.testkit import DeterministicClock

NOW = datetime(2026, 3, 4, 12, 0, 0, 250_000, tzinfo=UTC)
CLOCK = DeterministicClock(start=int(NOW.timestamp() * 1000))


async def asked(name: str, zone: str = "UTC", **arguments: Any) -> ToolMessage:
    return await result_of(time_tools(timezone=zone), name, clock=CLOCK, **arguments)


async def resolved(zone: str = "UTC", **arguments: Any) -> dict[str, Any]:
    message = await asked("resolve_time", zone, **arguments)
    assert not message.is_error, message.text
    answer: dict[str, Any] = orjson.loads(message.text)
    return answer


async def refused(**arguments: Any) -> str:
    message = await asked("resolve_time", **arguments)
    assert message.is_error, message.text
    return message.text


async def test_the_time_is_told_in_utc_and_locally() -> None:
    told = orjson.loads((await asked("current_time", "Asia/Tokyo")).text)
    assert told == {
        "utc": "2026-03-04T12:00:00.250000Z",
        "local": "2026-03-04T21:00:00.250000+09:00",
        "local_timezone": "Asia/Tokyo",
        "unix_seconds": 1_772_625_600,
        "weekday": "Wednesday",
    }


async def test_the_time_is_told_in_a_zone_that_was_asked_for() -> None:
    told = orjson.loads((await asked("current_time", timezone="Pacific/Kiritimati")).text)
    assert told["requested_timezone"] == {
        "name": "Pacific/Kiritimati",
        "time": "2026-03-05T02:00:00.250000+14:00",
        "weekday": "Thursday",
    }


@pytest.mark.parametrize(
    "zone", ["Mars/Olympus", "", "../../etc/passwd", "/etc/localtime", "America", "x" * 99, "a\0b"]
)
async def test_a_zone_that_there_is_not_is_said_beside_the_time(zone: str) -> None:
    message = await asked("current_time", timezone=zone)
    told = orjson.loads(message.text)
    assert not message.is_error
    assert "no time zone" in told["requested_timezone_error"]
    assert told["unix_seconds"] == 1_772_625_600
    assert "requested_timezone" not in told
    assert "no time zone" in await refused(expr="now", timezone=zone)
    with pytest.raises(ConfigurationError, match="no time zone"):
        time_tools(timezone=zone)


@pytest.mark.parametrize(
    ("expression", "moment"),
    [
        ("now", "2026-03-04T12:00:00.250000Z"),
        ("24h ago", "2026-03-03T12:00:00.250000Z"),
        ("2 weeks ago", "2026-02-18T12:00:00.250000Z"),
        ("in 10 minutes", "2026-03-04T12:10:00.250000Z"),
        ("30m from now", "2026-03-04T12:30:00.250000Z"),
        ("+2h", "2026-03-04T14:00:00.250000Z"),
        ("next 7d", "2026-03-11T12:00:00.250000Z"),
        ("last 2 hours", "2026-03-04T10:00:00.250000Z"),
        ("past 90 secs", "2026-03-04T11:58:30.250000Z"),
        ("3d", "2026-03-01T12:00:00.250000Z"),
        ("-1w", "2026-02-25T12:00:00.250000Z"),
        ("  In   1  HOUR ", "2026-03-04T13:00:00.250000Z"),
        ("today", "2026-03-04T00:00:00Z"),
        ("yesterday", "2026-03-03T00:00:00Z"),
        ("Tomorrow", "2026-03-05T00:00:00Z"),
        ("2026-01-31", "2026-01-31T00:00:00Z"),
        ("2026-01-31 14:05", "2026-01-31T14:05:00Z"),
        ("2026-01-31T14:05:06", "2026-01-31T14:05:06Z"),
        ("2026-01-31T14:05:06Z", "2026-01-31T14:05:06Z"),
        ("2026-01-31t14:05:06.5+02:00", "2026-01-31T12:05:06.500000Z"),
        ("2026-01-31T14:05:06.1234567-05:30", "2026-01-31T19:35:06.123456Z"),
    ],
)
async def test_an_expression_means_a_moment(expression: str, moment: str) -> None:
    assert (await resolved(expr=expression))["rfc3339"] == moment


async def test_days_begin_in_the_zone() -> None:
    told = await resolved("America/New_York", expr="today")
    assert told["interpreted"] == "2026-03-04T00:00:00-05:00"
    assert told["rfc3339"] == "2026-03-04T05:00:00Z"
    told = await resolved("America/New_York", expr="today", timezone="Asia/Tokyo")
    assert told["interpreted"] == "2026-03-04T00:00:00+09:00"


@pytest.mark.parametrize(
    ("format", "value"),
    [
        (None, 1_772_625_600),
        ("unix_s", 1_772_625_600),
        ("unix_ms", 1_772_625_600_250),
        ("slack_ts", "1772625600.250000"),
        ("rfc3339", "2026-03-04T12:00:00.250000Z"),
        ("stardate", 1_772_625_600),
    ],
)
async def test_the_value_has_the_form_that_was_asked_for(format: str | None, value: object) -> None:
    told = await resolved(expr="now", format=format)
    assert told == {
        "interpreted": "2026-03-04T12:00:00.250000+00:00",
        "value": value,
        "unix_s": 1_772_625_600,
        "unix_ms": 1_772_625_600_250,
        "slack_ts": "1772625600.250000",
        "rfc3339": "2026-03-04T12:00:00.250000Z",
    }


async def test_moments_before_1970_are_exact() -> None:
    told = await resolved(expr="1969-12-31T23:59:58.5Z")
    assert (told["unix_s"], told["unix_ms"], told["slack_ts"]) == (-2, -1_500, "-1.500000")


async def test_a_local_time_that_happens_twice_is_an_error_that_names_both_offsets() -> None:
    said = await refused(expr="2026-10-25 02:30", timezone="Europe/Berlin")
    assert "happens twice" in said
    assert "+02:00 or +01:00" in said
    told = await resolved(expr="2026-10-25T02:30:00+01:00", timezone="Europe/Berlin")
    assert told["rfc3339"] == "2026-10-25T01:30:00Z"


async def test_a_local_time_that_never_happens_is_an_error() -> None:
    assert "does not exist" in await refused(expr="2026-03-29 02:30", timezone="Europe/Berlin")
    # In Beirut the clocks are set forward at midnight: this day has none.
    assert "does not exist" in await refused(expr="2026-03-29", timezone="Asia/Beirut")
    assert "does not exist" in await refused(expr="2011-12-30 12:00", timezone="Pacific/Apia")


@pytest.mark.parametrize(
    "expression",
    [
        "", "   ", "soon", "next tuesday", "5 fortnights ago", "h", "ago", "1.5h", "٣ hours ago",
        "2026-02-30", "2026-13-01", "2026-01-31 25:00", "2026-01-31T23:59:60Z",
        "2026-01-31T00:00:00+24:00", "999999999999w", "in 999999999 weeks", "0000-01-01",
        "1700000000", "now; rm -rf /", "9" * 200,
    ],
)  # fmt: skip
async def test_what_is_no_moment_is_told_to_the_model(expression: str) -> None:
    assert await refused(expr=expression)


async def test_the_ends_of_the_calendar_are_errors_and_no_crashes() -> None:
    assert await refused(expr="9999-12-31 23:59", timezone="America/New_York")
    assert await refused(expr="0001-01-01", timezone="Asia/Tokyo")


async def test_a_missing_expression_is_told_to_the_model() -> None:
    message = await asked("resolve_time")
    assert message.is_error
    assert "expr" in message.text


def test_both_only_read() -> None:
    assert all(tool.policy.side_effects.read_only for tool in time_tools())
