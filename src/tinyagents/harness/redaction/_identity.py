"""Detectors of what belongs to a person: addresses, cards, accounts, telephones, machines."""

import ipaddress
import re
from collections.abc import Iterator

from ..errors import MissingDependencyError
from ._detector import Detector, PatternDetector, Span

_LETTERS = "".join(filter(str.isalnum, map(chr, range(0x250))))
"""Latin ones with accents too; scripts without spaces between words would be taken for addresses."""

_LOCAL = frozenset(f"{_LETTERS}._%+'-")
_DOMAIN_RUN = re.compile(f"[{_LETTERS}.-]*")
_DOMAIN = re.compile(
    rf"(?:[{_LETTERS}](?:[{_LETTERS}-]{{0,61}}[{_LETTERS}])?\.){{1,8}}"
    rf"(?:xn--[A-Za-z0-9-]{{1,59}}|[A-Za-z]{{2,24}})"
)
_LOCAL_CHARACTERS = 64
_DOMAIN_CHARACTERS = 190


class _EmailDetector:
    """Looks to both sides of each ``@``, so that a long run without one costs nothing."""

    label = "EMAIL"

    def find(self, text: str, start: int = 0) -> Iterator[Span]:
        at = text.find("@", start)
        while at >= 0:
            domain = _DOMAIN.match(text, at + 1, at + 1 + _DOMAIN_CHARACTERS)
            if domain is not None and (begin := _local_start(text, at, start)) < at:
                yield begin, domain.end()
            at = text.find("@", at + 1)

    def open_from(self, text: str, start: int = 0) -> int:
        first = _local_start(text, len(text), start)
        at = text.find("@", max(start, len(text) - _DOMAIN_CHARACTERS - 2))
        while at >= 0:
            if _DOMAIN_RUN.fullmatch(text, at + 1):
                first = min(first, _local_start(text, at, start))
                break
            at = text.find("@", at + 1)
        return first


def _local_start(text: str, at: int, start: int) -> int:
    """Return where the characters before ``at`` begin that the name of an address is made of."""
    low = max(start, at - _LOCAL_CHARACTERS)
    begin = at
    # Backwards by hand: a search from the left would try each place.
    while begin > low and text[begin - 1] in _LOCAL:
        begin -= 1
    return begin


_CARD_RUN = re.compile(r"(?<!\w)[0-9](?:[ \u00a0-]?[0-9]){12,}")
_CARD_GROUP = re.compile(r"[0-9]+")
_CARD_TAIL = re.compile(r"[0-9](?:[ \u00a0-]?[0-9])*[ \u00a0-]?\Z")
_CARD_DIGITS = (13, 19)
_CARD_CHARACTERS = 2 * _CARD_DIGITS[1]


class _CardDetector:
    """Finds whole groups of digits that are 13 to 19 together and pass the check of Luhn."""

    label = "CARD"

    def find(self, text: str, start: int = 0) -> Iterator[Span]:
        for run in _CARD_RUN.finditer(text, start):
            groups = [each.span() for each in _CARD_GROUP.finditer(text, *run.span())]
            if _is_word(text, run.end()):
                groups.pop()
            yield from _cards(text, groups)

    def open_from(self, text: str, start: int = 0) -> int:
        found = _CARD_TAIL.search(text, max(start, len(text) - _CARD_CHARACTERS))
        return found.start() if found is not None else len(text)


def _is_word(text: str, at: int) -> bool:
    return at < len(text) and (text[at].isalnum() or text[at] == "_")


def _cards(text: str, groups: list[Span]) -> Iterator[Span]:
    least, most = _CARD_DIGITS
    for first, (begin, _) in enumerate(groups):
        digits, found = "", None
        for group_begin, group_end in groups[first : first + most]:
            digits += text[group_begin:group_end]
            if len(digits) > most:
                break
            if len(digits) >= least and digits[0] in "23456" and _luhn(digits):
                found = group_end
        if found is not None:
            yield begin, found


def _luhn(digits: str) -> bool:
    """Whether the last digit is the check digit of the others (ISO/IEC 7812-1, annex B)."""
    total = 0
    for place, digit in enumerate(reversed(digits)):
        value = int(digit) * (1 + place % 2)
        total += value - 9 if value > 9 else value
    return total % 10 == 0


_IBAN_LENGTHS = {
    code: int(length)
    for length, codes in (
        line.split(":")
        for line in (
            "15:NO", "16:BE", "18:DK FO FI GL NL SD", "19:MK SI", "20:AT BA EE KZ LT LU MN XK",
            "21:CH HR LI LV", "22:BG BH CR DE GB GE IE ME RS VA", "23:AE GI IL IQ OM SO TL",
            "24:AD CZ DZ ES MD PK RO SA SE SK TN VG", "25:LY PT ST", "26:IS TR",
            "27:BF CM FR GR IT MC MG MR SM BI CG DJ GA", "28:AL AZ BJ BY CI CY DO GT HU LB ML PL SN SV NI MZ",
            "29:BR EG PS QA UA", "30:JO KW MU", "31:MT SC", "32:LC", "33:RU",
        )
    )
    for code in codes.split()
}  # fmt: skip
"""How many characters an IBAN has, by country: the registry of SWIFT, release 99."""

_IBAN_START = re.compile(r"(?<![A-Za-z0-9])[A-Za-z]{2}[0-9]{2}")
_IBAN_CHARACTERS = 2 * 34


class _IbanDetector:
    """Finds as many characters as the country's IBANs have that pass the check of ISO 13616."""

    label = "IBAN"

    def find(self, text: str, start: int = 0) -> Iterator[Span]:
        for found in _IBAN_START.finditer(text, start):
            length = _IBAN_LENGTHS.get(found[0][:2].upper())
            if length is None:
                continue
            compact, end = _compact(text, found.start(), length)
            after = text[end : end + 1]
            if len(compact) == length and not (after.isascii() and after.isalnum()):
                number = "".join(str(int(each, 36)) for each in compact[4:] + compact[:4])
                if int(number) % 97 == 1:
                    yield found.start(), end

    def open_from(self, text: str, start: int = 0) -> int:
        found = _IBAN_TAIL.search(text, max(start, len(text) - _IBAN_CHARACTERS))
        return found.start() if found is not None else len(text)


_IBAN_TAIL = re.compile(
    r"(?<![A-Za-z0-9])[A-Za-z](?:[A-Za-z](?:[0-9](?:[0-9](?:[ -]?[A-Za-z0-9]){0,30}[ -]?)?)?)?\Z"
)


def _compact(text: str, begin: int, length: int) -> tuple[str, int]:
    """Return so many letters and digits, between which single spaces or hyphens may stand."""
    taken: list[str] = []
    at, gap = begin, False
    while at < len(text) and len(taken) < length:
        each = text[at]
        if each in " -" and not gap and taken:
            gap = True
        elif each.isascii() and each.isalnum():
            taken.append(each)
            gap = False
        else:
            break
        at += 1
    return "".join(taken), at


class _PhoneDetector:
    """Finds the telephone numbers that ``phonenumbers`` holds for valid."""

    label = "PHONE"

    def __init__(self, region: str | None) -> None:
        try:
            from phonenumbers import PhoneNumberMatcher
        except ImportError as exc:
            raise MissingDependencyError("phonenumbers", extra="phone") from exc
        self._matcher = PhoneNumberMatcher
        self._region = region

    def find(self, text: str, start: int = 0) -> Iterator[Span]:
        for found in self._matcher(text, self._region):
            if found.start >= start:
                yield found.start, found.end

    def open_from(self, text: str, start: int = 0) -> int:
        found = _PHONE_TAIL.search(text, max(start, len(text) - _PHONE_CHARACTERS))
        return found.start() if found is not None else len(text)


_PHONE_CHARACTERS = 200
_PHONE_TAIL = re.compile(
    r"[(\[+\uff0b\uff08]{1,3}\Z|[(\[+\uff0b\uff08]{0,3}[0-9][0-9\s()\[\].,;/~x#*+\u2010-\u2015\uff0b-]{0,160}"
    r"(?:[A-Za-z]{1,10}[\s.:=]{0,3}[0-9]{0,10})?\Z"
)
"""A number, and what may be its extension."""


def email() -> Detector:
    """Return a detector of e-mail addresses, labelled ``EMAIL``."""
    return _EmailDetector()


def credit_card() -> Detector:
    """Return a detector of card numbers, labelled ``CARD``: grouped or not, checked by Luhn."""
    return _CardDetector()


def iban() -> Detector:
    """Return a detector of account numbers, labelled ``IBAN``: grouped or not, with a right checksum."""
    return _IbanDetector()


def phone(region: str | None = None) -> Detector:
    """Return a detector of telephone numbers, labelled ``PHONE``.

    Args:
        region: The country, such as ``US``, whose numbers are found without their ``+1`` as well.

    Raises:
        MissingDependencyError: The extra ``phone`` is not installed.
    """
    return _PhoneDetector(region)


def ip_address() -> Detector:
    """Return a detector of IPv4 and IPv6 addresses, labelled ``IP``."""
    return PatternDetector(
        "IP",
        # Looking ahead takes nothing: what is no address after all hides none within it.
        r"(?<![\w.])(?=(?P<secret>(?:[0-9]{1,3}\.){3}[0-9]{1,3}(?!\w|\.[0-9])"
        r"|(?<![0-9A-Fa-f:]:)(?=[0-9A-Fa-f]{0,4}:)"
        r"[0-9A-Fa-f:]{1,38}(?:[0-9A-Fa-f]|::)(?!\w|:[0-9A-Fa-f:])))",
        tail=r"[0-9A-Fa-f:.]{1,44}",
        longest=40,
        accept=_is_address,
    )


def _is_address(text: str) -> bool:
    if ":" in text and sum(each.isalnum() for each in text) < 4:
        return False  # as in `a::b`, which is code more often
    try:
        ipaddress.ip_address(text)
    except ValueError:
        return False
    return True


def mac_address() -> Detector:
    """Return a detector of MAC addresses, labelled ``MAC``."""
    return PatternDetector(
        "MAC",
        r"(?<![\w:.-])(?:[0-9A-Fa-f]{2}([:-])(?:[0-9A-Fa-f]{2}\1){4}[0-9A-Fa-f]{2}"
        r"|[0-9A-Fa-f]{4}(?:\.[0-9A-Fa-f]{4}){2})(?![\w:-])",
        tail=r"[0-9A-Fa-f:.-]{1,20}",
        longest=17,
    )
