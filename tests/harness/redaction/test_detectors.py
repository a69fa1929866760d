"""What the detectors find, and what they leave."""

import sys
import time

import pytest

from tinyagents.harness.errors import ConfigurationError, MissingDependencyError
from tinyagents.harness.redaction import (
    Detector,
    LiteralDetector,
    Redactor,
    WindowDetector,
    all_detectors,
    api_key,
    credit_card,
    detect_pattern,
    email,
    iban,
    ip_address,
    jwt,
    mac_address,
    phone,
    private_key,
    url_credentials,
)

PEM = "-----BEGIN RSA PRIVATE KEY-----\nProc-Type: 4,ENCRYPTED\n\nMIIEpAIB\n-----END RSA PRIVATE KEY-----"


def key(head: str, size: int = 48) -> str:
    """A key that is none, which no scanner of this repository takes for one."""
    return head + ("a1B2" * size)[:size]


FOUND: list[tuple[Detector, str, str]] = [
    (email(), "to a.b+c@mail.example.co.uk.", "a.b+c@mail.example.co.uk"),
    (email(), "«jörg@münchen.de»", "jörg@münchen.de"),
    (email(), "x" * 100 + "@example.test", "x" * 64 + "@example.test"),
    (credit_card(), "card 4111 1111 1111 1111, ok", "4111 1111 1111 1111"),
    (credit_card(), "5500-0000-0000-0004", "5500-0000-0000-0004"),
    (credit_card(), "12 378282246310005 9", "378282246310005"),
    (ip_address(), "at 192.168.0.1:80.", "192.168.0.1"),
    (ip_address(), "at fe80::1ff:fe23:4567:890a: ok", "fe80::1ff:fe23:4567:890a"),
    (ip_address(), "ip:2001:db8::1.", "2001:db8::1"),
    (mac_address(), "00:1A:2b:3C:4D:5E", "00:1A:2b:3C:4D:5E"),
    (mac_address(), "mac 001A.2B3C.4D5E", "001A.2B3C.4D5E"),
    (url_credentials(), "https://me:p@ss@host/x", "me:p@ss"),
    (url_credentials(), "/x?a=1&access_token=abc&b=2", "abc"),
    (iban(), "GB82 WEST 1234 5698 7654 32 AND", "GB82 WEST 1234 5698 7654 32"),
    (iban(), "de89370400440532013000.", "de89370400440532013000"),
    (jwt(), "t eyJhbGciOiJI.eyJzdWIiOiIx.SflKxw.", "eyJhbGciOiJI.eyJzdWIiOiIx.SflKxw"),
    (private_key(), f"a {PEM} b", PEM),
    (private_key(), PEM[:60], PEM[:60]),
    *[
        (api_key(), f"key={key(head)};", key(head))
        for head in (
            "sk-", "sk-proj-", "sk-ant-api03-", "AIza", "ghp_", "github_pat_", "xoxb-", "sk_live_", "hf_",
            "gsk_", "xai-", "glpat-", "SG.", "Bearer ",
        )
    ],
    (api_key(), "AKIAABCDEFGHIJKLMNOP", "AKIAABCDEFGHIJKLMNOP"),
]  # fmt: skip


@pytest.mark.parametrize(("detector", "text", "secret"), FOUND)
def test_a_detector_finds_the_whole_of_it_and_no_more(
    detector: Detector, text: str, secret: str
) -> None:
    found = [text[begin:end] for begin, end in detector.find(text)]
    assert found == [secret]


@pytest.mark.parametrize(
    "text",
    [
        "a@b",
        "user@localhost",
        "4111 1111 1111 1112",
        "1234567890123456",
        "a4111111111111111",
        "256.1.1.1",
        "1.2.3.4.5",
        "std::vector<a::b>",
        "12:30:45",
        "00:1A:2B:3C:4D",
        "https://example.test/a:b@c",
        "?tokens=1",
        "GB82 WEST 1234 5698 7654 33",
        "a sk-short key",
        "task-force-of-many-words-in-a-row",
        "-----BEGIN PUBLIC KEY-----",
    ],
)
def test_what_only_looks_like_it_stays(text: str) -> None:
    assert Redactor().text(text) == text


def test_telephone_numbers_are_found_by_region_and_by_their_plus() -> None:
    redactor = Redactor([phone("US")])
    assert (
        redactor.text("(415) 555-2671 ext 12, or +44 20 7946 0958!") == "[REDACTED], or [REDACTED]!"
    )
    assert (
        Redactor([phone()]).text("(415) 555-2671 on 2026-12-01") == "(415) 555-2671 on 2026-12-01"
    )


def test_telephone_numbers_without_their_package_name_the_extra(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setitem(sys.modules, "phonenumbers", None)
    with pytest.raises(MissingDependencyError, match=r"tinyagents\[phone\]") as caught:
        phone()
    assert caught.value.extra == "phone"


def test_literal_texts_are_found_where_they_overlap_and_empty_ones_are_left_out() -> None:
    redactor = Redactor(["", "aba", "ab"])
    assert redactor.text("xababax ab") == "x[REDACTED]x [REDACTED]"
    assert Redactor([""]).text("abc") == "abc"


def test_a_literal_detector_does_not_show_its_texts() -> None:
    assert "hunter2" not in repr(LiteralDetector(["hunter2"]))
    assert "hunter2" not in repr(Redactor(["hunter2"]))


def test_patterns_and_functions_of_ones_own_are_detectors() -> None:
    def shouting(text: str) -> list[tuple[int, int]]:
        at = text.find("STOP")
        return [(at, at + 4)] if at >= 0 else []

    redactor = Redactor(
        [detect_pattern(r"ACME-\d+", label="ORDER"), WindowDetector("SHOUT", shouting, longest=4)],
        mask="<{label}>",
    )
    assert redactor.text("ACME-12 STOP") == "<ORDER> <SHOUT>"


@pytest.mark.parametrize("pattern", ["(", "a*"])
def test_a_pattern_that_cannot_work_is_refused(pattern: str) -> None:
    with pytest.raises(ConfigurationError, match="CUSTOM"):
        detect_pattern(pattern)


def test_a_label_that_masks_could_not_hold_is_refused() -> None:
    with pytest.raises(ConfigurationError, match="capital letters"):
        LiteralDetector(["x"], label="my label")


@pytest.mark.parametrize(
    "piece",
    ["a", "a@", "1", "1 ", ":", "a:", "://", "sk-", "eyJ", "-----BEGIN ", "-", "[REDACTED", "DE89 ", "?key="],
)  # fmt: skip
def test_a_long_text_of_anything_is_read_once(piece: str) -> None:
    text = piece * (200_000 // len(piece))
    began = time.process_time()
    for detector in all_detectors():
        list(detector.find(text))
        detector.open_from(text)
    # Linear code takes less than a second; what is quadratic takes a minute.
    assert time.process_time() - began < 15
