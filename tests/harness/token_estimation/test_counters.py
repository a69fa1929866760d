"""Counting the tokens of a text: by a rule of thumb, with a tokenizer, and never by a download."""

import hashlib
import sys
from pathlib import Path
from typing import Any

import pytest

from tinyagents.harness.errors import ConfigurationError, MissingDependencyError
from tinyagents.harness.token_estimation import (
    HEURISTIC,
    HeuristicTokenCounter,
    TiktokenCounter,
    as_token_counter,
    estimate_tokens,
)


class Words:
    """A tokenizer whose tokens are words."""

    def encode(self, text: str, /) -> list[str]:
        return text.split()


class Encoding:
    """What the package `tokenizers` returns: an object with a length that has the tokens as `ids`."""

    def __init__(self, count: int) -> None:
        self.ids = list(range(count))

    def __len__(self) -> int:
        return 1


class Tokenizers:
    def encode(self, text: str, /) -> Encoding:
        return Encoding(len(text))


def test_latin_text_is_a_token_for_four_characters_and_begun_ones_count() -> None:
    assert [estimate_tokens("a" * n) for n in (0, 1, 4, 5, 400)] == [0, 1, 1, 2, 100]


@pytest.mark.parametrize(
    ("sample", "least"),
    [
        pytest.param("漢", 2.0, id="han"),
        pytest.param("か", 2.0, id="kana"),
        pytest.param("한", 2.0, id="hangul"),
        pytest.param("😀", 4.0, id="emoji"),
        pytest.param("ж", 1.5, id="cyrillic"),
        pytest.param("ไ", 3.0, id="thai"),
        pytest.param("नि", 3.0, id="devanagari"),
        pytest.param("ع", 1.5, id="arabic"),
        pytest.param("é", 1.0, id="accents"),
    ],
)
def test_scripts_that_tokenizers_know_less_well_weigh_more(sample: str, least: float) -> None:
    text = sample * (400 // len(sample))
    assert estimate_tokens(text) >= least * estimate_tokens("a" * 400)


def test_a_divisor_that_is_no_number_above_nothing_is_four() -> None:
    for odd in (0, -1, float("nan"), float("inf")):
        assert HeuristicTokenCounter(odd).count_text("a" * 8) == 2
    assert HeuristicTokenCounter(2).count_text("a" * 8) == 4


def test_any_object_with_encode_counts() -> None:
    assert as_token_counter(Words()).count_text("one two three") == 3
    assert as_token_counter(Tokenizers()).count_text("four") == 4
    assert as_token_counter(Words()).count_text("") == 0


def test_nothing_stands_for_the_rule_of_thumb_and_a_counter_for_itself() -> None:
    counter = HeuristicTokenCounter(3)
    assert as_token_counter(None) is HEURISTIC
    assert as_token_counter(counter) is counter


@pytest.mark.parametrize("odd", ["o200k_base", 7, object(), len, HeuristicTokenCounter, Words])
def test_what_counts_nothing_is_refused(odd: Any) -> None:
    with pytest.raises(ConfigurationError, match="pass"):
        as_token_counter(odd)


def test_a_vocabulary_that_is_not_here_is_not_downloaded(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TIKTOKEN_CACHE_DIR", str(tmp_path))
    with pytest.raises(ConfigurationError, match="nothing is downloaded"):
        TiktokenCounter("r50k_base")
    address = "https://openaipublic.blob.core.windows.net/encodings/r50k_base.tiktoken"
    (tmp_path / hashlib.sha1(address.encode()).hexdigest()).write_bytes(b"YQ== 0\n")
    with pytest.raises(ConfigurationError, match="damaged"):
        TiktokenCounter("r50k_base")


def test_an_unknown_encoding_is_told_with_those_there_are() -> None:
    with pytest.raises(ConfigurationError, match="o200k_base"):
        TiktokenCounter("gpt-5")


def test_an_encoding_of_ones_own_counts_and_takes_special_tokens_for_text() -> None:
    tiktoken = pytest.importorskip("tiktoken")
    bytes_only = {bytes([n]): n for n in range(256)}
    encoding = tiktoken.Encoding(
        "bytes", pat_str=r"(?s).", mergeable_ranks=bytes_only, special_tokens={"<|end|>": 256}
    )
    for counter in (TiktokenCounter(encoding), as_token_counter(encoding)):
        assert counter.count_text("<|end|>é") == 9


@pytest.mark.parametrize("variable", ["TIKTOKEN_CACHE_DIR", "DATA_GYM_CACHE_DIR"])
def test_a_folder_without_a_name_is_no_wish_to_download(
    variable: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("TIKTOKEN_CACHE_DIR", raising=False)
    monkeypatch.setenv(variable, "")
    with pytest.raises(ConfigurationError, match=f"`{variable}` is empty"):
        TiktokenCounter("r50k_base")


def test_a_missing_package_is_told_with_its_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "tiktoken", None)
    with pytest.raises(MissingDependencyError, match=r"tinyagents\[tokens\]"):
        TiktokenCounter("p50k_base")
