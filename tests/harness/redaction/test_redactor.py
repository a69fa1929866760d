"""What is written in the place of what was found."""

from collections import Counter
from typing import Any

import pytest
from hypothesis import given, strategies as st

from tinyagents.harness.errors import ConfigurationError
from tinyagents.harness.redaction import Redactor, Strategy, credit_card, email

CARD = "4111 1111 1111 1111"


def test_literal_texts_are_tried_in_order_and_all_of_the_match_goes() -> None:
    assert Redactor(["ab", "abc"]).text("abcab") == "[REDACTED][REDACTED]"


@pytest.mark.parametrize("strategy", ["redact", "mask", "hash", "block"])
@given(text=st.text(st.sampled_from("abRED[]ACT_:*")))
def test_redacting_twice_changes_nothing_and_counts_nothing(strategy: Strategy, text: str) -> None:
    redactor = Redactor(["RED", "ab", "T", "_"], strategy=strategy, hash_key="k")
    once = redactor.text(text)
    found: Counter[str] = Counter()
    assert redactor.text(once, found) == once
    assert not found


def test_each_strategy_writes_its_own() -> None:
    text = f"a@b.example {CARD}"
    detectors = [email(), credit_card()]
    assert Redactor(detectors, mask="[REDACTED_{label}]").text(text) == (
        "[REDACTED_EMAIL] [REDACTED_CARD]"
    )
    assert Redactor(detectors, strategies={"CARD": "mask"}).text(text) == (
        "[REDACTED] [CARD:****1111]"
    )
    hashed = Redactor(detectors, strategy="hash", hash_key=b"key").text(f"{text} {CARD}").split(" ")
    assert hashed[1] == hashed[2]
    assert hashed[0] != hashed[1]
    assert Redactor(detectors, strategy="hash", hash_key=b"other").text(CARD) != hashed[1]


def test_a_short_text_is_masked_whole() -> None:
    assert Redactor(["abc"], strategy="mask").text("abc") == "[SECRET:****]"


def test_matches_that_overlap_are_one() -> None:
    found: Counter[str] = Counter()
    redactor = Redactor([email(), "b77@example.test or"])
    assert redactor.text("mail b77@example.test or call", found) == "mail [REDACTED] call"
    assert found == {"SECRET": 1}


def test_every_occurrence_is_counted_once() -> None:
    found: Counter[str] = Counter()
    Redactor(["key"]).json({"a": ["key key", {"b": "monkey"}], "key": 1}, found)
    assert found == {"SECRET": 3}


def test_json_keeps_its_shape_and_keys_change_only_when_asked() -> None:
    value = {"key": ["a key", 1, None, True], "n": {"deep": ("key",)}}
    assert Redactor(["key"]).json(value) == {
        "key": ["a [REDACTED]", 1, None, True],
        "n": {"deep": ("[REDACTED]",)},
    }
    assert Redactor(["k1", "k2"], keys=True).json({"k1": 1, "k2": 2, "x": 3}) == {
        "[REDACTED]": 1,
        "[REDACTED] 2": 2,
        "x": 3,
    }


def test_a_number_whose_digits_are_a_secret_becomes_a_text() -> None:
    assert Redactor().json({"card": 4111111111111111, "n": 12}) == {"card": "[REDACTED]", "n": 12}


def test_what_holds_nothing_is_not_copied() -> None:
    value: dict[str, Any] = {"a": ["b", {"c": 1.5}]}
    assert Redactor().json(value) is value


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"strategy": "hide"}, "no strategy `hide`"),
        ({"strategies": {"PHONE": "mask"}}, "no detector finds `PHONE`"),
        ({"strategy": "hash"}, "needs a `hash_key`"),
        ({"mask": ""}, "must not be empty"),
        ({"detectors": "secret"}, "is a list"),
        ({"detectors": [3]}, "no detector"),
    ],
)
def test_a_setting_that_cannot_work_is_refused(settings: dict[str, Any], message: str) -> None:
    with pytest.raises(ConfigurationError, match=message):
        Redactor(**settings)
