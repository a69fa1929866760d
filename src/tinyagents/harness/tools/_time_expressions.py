"""Moments as people and models write them."""

import re
from datetime import UTC, datetime, timedelta, tzinfo
from typing import Final
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

_LONGEST_EXPRESSION = 100
_LONGEST_ZONE = 64
_SECONDS_OF: Final = {
    "s": 1,
    "m": 60,
    "h": 3_600,
    "d": 86_400,
    "w": 604_800,
}
_UNITS: Final = {
    **dict.fromkeys(("s", "sec", "secs", "second", "seconds"), "s"),
    **dict.fromkeys(("m", "min", "mins", "minute", "minutes"), "m"),
    **dict.fromkeys(("h", "hr", "hrs", "hour", "hours"), "h"),
    **dict.fromkeys(("d", "day", "days"), "d"),
    **dict.fromkeys(("w", "wk", "wks", "week", "weeks"), "w"),
}
_AMOUNT = r"(?P<count>\d{1,12}) ?(?P<unit>[a-z]{1,7})"
_RELATIVE: Final = tuple(
    (re.compile(pattern, re.ASCII), sign)
    for pattern, sign in (
        (rf"in {_AMOUNT}", 1),
        (rf"{_AMOUNT} from now", 1),
        (rf"\+ ?{_AMOUNT}", 1),
        (rf"next {_AMOUNT}", 1),
        (rf"{_AMOUNT} ago", -1),
        (rf"- ?{_AMOUNT}", -1),
        (rf"(?:last|past) {_AMOUNT}", -1),
        (_AMOUNT, -1),  # without a direction it is the past
    )
)
_DAYS: Final = {"today": 0, "yesterday": -1, "tomorrow": 1}
_DATE = r"(\d{4})-(\d\d)-(\d\d)"
_CIVIL = re.compile(rf"{_DATE}(?:[ t](\d\d):(\d\d)(?::(\d\d))?)?", re.ASCII)
_RFC3339 = re.compile(
    rf"{_DATE}[ t](\d\d):(\d\d):(\d\d)(?:\.(\d{{1,9}}))? ?(z|[+-]\d\d:\d\d)", re.ASCII
)
_FORMS = (
    "now; 24h ago, in 10 minutes, 30m from now, +2h, next 7d, last 2 weeks (s, m, h, d, w); today, "
    "yesterday, tomorrow; 2026-01-31, 2026-01-31 14:00[:30], 2026-01-31T14:00:00Z"
)


class TimeExpressionError(ValueError):
    """An expression names no moment, or more than one; the text is for a model."""


def zone_named(name: str) -> ZoneInfo:
    """Return a time zone by its IANA name.

    Raises:
        TimeExpressionError: There is none of that name.
    """
    if len(name) > _LONGEST_ZONE:
        raise TimeExpressionError("There is no time zone with such a long name.")
    try:
        return ZoneInfo(name)
    except (ZoneInfoNotFoundError, ValueError, OSError) as exc:
        raise TimeExpressionError(
            f"There is no time zone {name!r}: use an IANA name such as Europe/Berlin, or UTC."
        ) from exc


def resolve_expression(expression: str, *, now: datetime, zone: tzinfo) -> datetime:
    """Return the moment that an expression names, in UTC.

    Args:
        expression: In any of the forms that the error lists. Days and weeks of a relative one are of
            24 hours; dates and times without an offset are of ``zone``.
        now: The present, aware.
        zone: Where the clock on the wall is.

    Raises:
        TimeExpressionError: It cannot be read, the local time happens twice or never, or it is too far
            from now.
    """
    text = " ".join(expression.lower().split())
    if not text:
        raise TimeExpressionError(f"An expression is missing. It is one of: {_FORMS}.")
    if len(text) > _LONGEST_EXPRESSION:
        raise TimeExpressionError(f"The expression is too long. It is one of: {_FORMS}.")
    try:
        found = _resolved(text, now.astimezone(UTC), zone)
    except TimeExpressionError:
        raise
    except (ValueError, OverflowError) as exc:
        raise TimeExpressionError(f"{expression!r} is no moment in time: {exc}.") from exc
    if found is None:
        raise TimeExpressionError(
            f"{expression!r} cannot be read as a time. It is one of: {_FORMS}."
        )
    return found


def _resolved(text: str, now: datetime, zone: tzinfo) -> datetime | None:
    if text == "now":
        return now
    if text in _DAYS:
        day = now.astimezone(zone).date() + timedelta(days=_DAYS[text])
        return _moment_of(datetime(day.year, day.month, day.day), zone)  # noqa: DTZ001 - civil time
    if (civil := _CIVIL.fullmatch(text)) is not None:
        parts = [int(part) for part in civil.groups(default="0")]
        return _moment_of(datetime(*parts), zone)  # type: ignore[arg-type,unused-ignore] # noqa: DTZ001
    if (stamp := _RFC3339.fullmatch(text)) is not None:
        return _moment_of_stamp(stamp)
    for pattern, sign in _RELATIVE:
        found = pattern.fullmatch(text)
        if found is not None and found["unit"] in _UNITS:
            seconds = int(found["count"]) * _SECONDS_OF[_UNITS[found["unit"]]]
            return now + timedelta(seconds=sign * seconds)
    return None


def _moment_of(civil: datetime, zone: tzinfo) -> datetime:
    """Return when a clock on the wall of the zone shows this."""
    first, second = (civil.replace(tzinfo=zone, fold=fold) for fold in (0, 1))
    moment = first.astimezone(UTC)
    if first.utcoffset() == second.utcoffset():
        return moment
    shown = f"{civil:%Y-%m-%d %H:%M:%S}"
    if moment.astimezone(zone).replace(tzinfo=None, fold=0) != civil:
        raise TimeExpressionError(
            f"{shown} does not exist in {zone}: the clocks are set forward over it."
        )
    one, other = (each.isoformat()[-6:] for each in (first, second))
    raise TimeExpressionError(f"{shown} happens twice in {zone}: add the offset, {one} or {other}.")


def _moment_of_stamp(stamp: re.Match[str]) -> datetime:
    year, month, day, hour, minute, second = (int(part) for part in stamp.groups()[:6])
    fraction, offset = stamp[7] or "", stamp[8]
    moment = datetime(
        year, month, day, hour, minute, second, int(fraction[:6].ljust(6, "0")), tzinfo=UTC
    )
    if offset == "z":
        return moment
    hours, minutes = int(offset[1:3]), int(offset[4:6])
    if hours > 23 or minutes > 59:
        raise ValueError("there is no such offset")
    ahead = timedelta(hours=hours, minutes=minutes)
    return moment - ahead if offset[0] == "+" else moment + ahead
