"""Tools that tell the time: models do not know what day it is, and reckon badly with dates."""

from datetime import UTC, datetime, timedelta, tzinfo
from functools import partial
from typing import Annotated, Any

from pydantic import Field, JsonValue

from ..errors import ConfigurationError
from ..text import JsonObject
from ..tool import Tool, ToolContext, ToolError, ToolPolicy, tool
from ._time_expressions import TimeExpressionError, resolve_expression, zone_named

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECOND = timedelta(microseconds=1)
_WEEKDAYS = ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday")
"""In English whatever the locale is, in which ``strftime`` would say it."""

Zone = Annotated[str | None, Field(description="An IANA time zone, such as Europe/Berlin.")]
Expression = Annotated[
    str,
    Field(
        description="now; relative: 24h ago, in 10 minutes, +2h, next 7d, last 2 weeks; today, "
        "yesterday, tomorrow; 2026-01-31; 2026-01-31 14:00; 2026-01-31T14:00:00Z"
    ),
]
Format = Annotated[
    str | None,
    Field(description="What `value` is: unix_s (the default), unix_ms, slack_ts or rfc3339."),
]


def time_tools(*, timezone: str = "UTC") -> tuple[Tool, Tool]:
    """Return the tools ``current_time`` and ``resolve_time``.

    Both read the clock of the run's context. A local time that happens twice when the clocks are
    set back, or never, is an error that says so.

    Args:
        timezone: The IANA name of the zone that counts as local, and the one that expressions are read
            in where the model names none.

    Raises:
        ConfigurationError: There is no time zone of that name.
    """
    try:
        local = zone_named(timezone)
    except TimeExpressionError as exc:
        raise ConfigurationError(f"`timezone`: {exc}") from exc
    told, resolved = partial(_current_time, local=local), partial(_resolve_time, local=local)

    @tool(policy=ToolPolicy.read_only())
    def current_time(timezone: Zone = None, *, ctx: ToolContext) -> JsonObject:
        """What time it is now: in UTC, locally, and in a time zone if one is given."""
        return told(timezone, ctx=ctx)

    @tool(policy=ToolPolicy.read_only())
    def resolve_time(
        expr: Expression, format: Format = None, timezone: Zone = None, *, ctx: ToolContext
    ) -> JsonObject:
        """Turn an expression for a time into timestamps. Without a direction it means the past."""
        return resolved(expr, format, timezone, ctx=ctx)

    return current_time, resolve_time


def _current_time(timezone: str | None, *, ctx: ToolContext[Any], local: tzinfo) -> JsonObject:
    now = _now(ctx)
    here = now.astimezone(local)
    told: JsonObject = {
        "utc": _rfc3339(now),
        "local": here.isoformat(),
        "local_timezone": str(local),
        "unix_seconds": _microseconds(now) // 1_000_000,
        "weekday": _WEEKDAYS[here.weekday()],
    }
    if timezone is None:
        return told
    try:
        there = now.astimezone(zone_named(timezone))
    except TimeExpressionError as exc:
        return {**told, "requested_timezone_error": str(exc)}
    named: JsonValue = {
        "name": timezone,
        "time": there.isoformat(),
        "weekday": _WEEKDAYS[there.weekday()],
    }
    return {**told, "requested_timezone": named}


def _resolve_time(
    expr: str, format: str | None, timezone: str | None, *, ctx: ToolContext[Any], local: tzinfo
) -> JsonObject:
    try:
        zone = local if timezone is None else zone_named(timezone)
        moment = resolve_expression(expr, now=_now(ctx), zone=zone)
        interpreted = moment.astimezone(zone).isoformat()
    except (TimeExpressionError, OverflowError) as exc:
        raise ToolError(str(exc)) from exc
    forms = _forms(moment)
    value = forms.get(format or "unix_s", forms["unix_s"])
    return {"interpreted": interpreted, "value": value, **forms}


def _now(ctx: ToolContext[Any]) -> datetime:
    return _EPOCH + timedelta(milliseconds=ctx.run.clock.now_ms())


def _forms(moment: datetime) -> JsonObject:
    microseconds = _microseconds(moment)
    seconds, fraction = divmod(abs(microseconds), 1_000_000)
    sign = "-" if microseconds < 0 else ""
    return {
        "unix_s": microseconds // 1_000_000,
        "unix_ms": microseconds // 1_000,
        "slack_ts": f"{sign}{seconds}.{fraction:06d}",
        "rfc3339": _rfc3339(moment),
    }


def _microseconds(moment: datetime) -> int:
    return (moment - _EPOCH) // _MICROSECOND


def _rfc3339(moment: datetime) -> str:
    return moment.astimezone(UTC).isoformat().removesuffix("+00:00") + "Z"
