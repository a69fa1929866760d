import json
import time
from typing import Any

import pytest

from tinyagents.harness.errors import (
    AuthenticationError,
    BadRequestError,
    ConfigurationError,
    ContentFilterError,
    ContextOverflowError,
    ModelError,
    NetworkError,
    ProviderTimeoutError,
    RateLimitError,
    ServerError,
)

# The table itself: what adapters make of it is in `test_answers.py` and `test_transport.py`.
from tinyagents.harness.providers._errors import (
    error_from_exception,
    error_from_payload,
    error_from_response,
    request_id,
    retry_after,
)
from tinyagents.harness.retry import RetryPolicy


def refused(
    status: int, body: Any, headers: dict[str, str] | None = None, **options: Any
) -> ModelError:
    raw = body if isinstance(body, bytes) else json.dumps(body).encode()
    return error_from_response(status, headers or {}, raw, provider="p", model="m", **options)


def told(body: Any, **options: Any) -> ModelError:
    return error_from_payload(body, provider="p", model="m", **options)


@pytest.mark.parametrize(
    ("status", "cls", "retryable"),
    [
        (400, BadRequestError, False),
        (401, AuthenticationError, False),
        (402, RateLimitError, False),
        (403, AuthenticationError, False),
        (404, BadRequestError, False),
        (405, BadRequestError, False),
        (408, ProviderTimeoutError, True),
        (409, ServerError, True),
        (413, BadRequestError, False),
        (422, BadRequestError, False),
        (429, RateLimitError, True),
        (498, ServerError, True),
        (500, ServerError, True),
        (502, ServerError, True),
        (503, ServerError, True),
        (504, ServerError, True),
        (529, ServerError, True),
    ],
)
def test_a_status_decides_the_class_and_whether_to_try_again(
    status: int, cls: type[ModelError], retryable: bool
) -> None:
    error = refused(status, {"error": {"message": "no"}})
    assert type(error) is cls
    assert error.retryable is retryable
    assert RetryPolicy().should_retry(error, 1) is retryable
    assert (error.status, error.provider, error.model) == (status, "p", "m")


@pytest.mark.parametrize(
    ("body", "message"),
    [
        ({"error": {"message": "one"}}, "one"),
        ({"message": "two"}, "two"),
        ({"error": "three"}, "three"),
        ({"error": {"error": "x"}, "message": "four"}, "four"),
        ({"detail": "five"}, "five"),
        ({"detail": [{"loc": ["a"], "msg": "six"}, {"msg": "seven"}]}, "six; seven"),
        ([{"error": {"message": "eight"}}], "eight"),
        ("nine", "nine"),
        (b"ten", "ten"),
        (b"<html><head><title>Eleven</title></head><body>x</body></html>", "Eleven"),
        (b"", "the provider refused without giving a reason"),
        ({}, "the provider refused without giving a reason"),
        ({"error": {"message": "Provider returned error", "metadata": {"raw": "busy"}}},
         "Provider returned error: busy"),
    ],
)  # fmt: skip
def test_the_words_are_found_in_every_form_of_body(body: Any, message: str) -> None:
    assert refused(500, body).message == message


def test_a_long_message_is_cut_and_kept_whole_in_raw() -> None:
    error = refused(500, {"message": "x" * 10_000})
    assert len(error.message) < 2_100
    assert error.raw == {"message": "x" * 10_000}


@pytest.mark.parametrize(
    ("body", "code"),
    [
        ({"error": {"code": "a", "type": "b"}}, "a"),
        ({"error": {"code": None, "type": "b"}}, "b"),
        ({"error": {"code": 429}}, "429"),
        ({"error": {"code": 502, "metadata": {"error_type": "c"}}}, "c"),
        ({"error": {"message": "x"}}, None),
        ("x", None),
    ],
)
def test_the_code_is_the_providers_own_word(body: Any, code: str | None) -> None:
    assert refused(500, body).code == code


@pytest.mark.parametrize("status", [400, 413, 422, 500])
@pytest.mark.parametrize(
    "words",
    [
        "This model's maximum context length is 8192 tokens.",
        "the request exceeds the context window",
        "Too many tokens in the prompt",
        "Please reduce the length of the messages.",
        "prompt is too long: 210000 tokens",
        "input length exceeds the maximum of 4096",
    ],
)
def test_a_prompt_that_is_too_long_has_its_own_class(status: int, words: str) -> None:
    error = refused(status, {"error": {"message": words}})
    assert type(error) is ContextOverflowError
    assert error.code == "context_overflow"
    assert not error.retryable


def test_a_code_alone_tells_of_a_prompt_that_is_too_long() -> None:
    assert (
        type(refused(400, {"error": {"code": "context_length_exceeded"}})) is ContextOverflowError
    )


def test_an_answer_limit_that_is_too_high_is_no_overflow_of_the_prompt() -> None:
    error = refused(400, {"error": {"message": "max_tokens: 999999 exceeds the maximum of 4096"}})
    assert type(error) is BadRequestError


def test_a_rate_limit_that_speaks_of_tokens_is_no_overflow() -> None:
    assert type(refused(429, {"message": "too many tokens per minute"})) is RateLimitError


@pytest.mark.parametrize(
    "body",
    [
        {"error": {"code": "content_filter", "message": "no"}},
        {"error": {"message": "triggered our content management policy"}},
        {"error": {"code": "content_policy_violation"}},
    ],
)
def test_blocked_content_has_its_own_class(body: Any) -> None:
    assert type(refused(400, body)) is ContentFilterError


@pytest.mark.parametrize(
    "words",
    [
        "insufficient_quota",
        "You exceeded your current quota, please check your plan",
        "Insufficient Balance",
        "your plan does not include this model",
        "out of credits",
        "code 1113: recharge",
    ],
)
def test_a_used_up_quota_is_not_tried_again(words: str) -> None:
    error = refused(429, {"error": {"message": words}})
    assert type(error) is RateLimitError
    assert not error.retryable


def test_digits_inside_a_larger_number_are_no_quota_code() -> None:
    assert refused(429, {"error": {"message": "limit 11131 reached"}}).retryable


@pytest.mark.parametrize(
    ("headers", "seconds"),
    [
        ({"retry-after": "7"}, 7.0),
        ({"retry-after": "1.5"}, 1.5),
        ({"retry-after": "0"}, 0.0),
        ({"retry-after": "Thu, 01 Jan 1970 00:01:40 GMT"}, 90.0),
        ({"retry-after": "Thu, 01 Jan 1970 00:00:01 GMT"}, 0.0),
        ({"retry-after-ms": "250", "retry-after": "1"}, 0.25),
        ({"retry-after-ms": "0", "retry-after": "1"}, 1.0),
        ({"retry-after": "soon"}, None),
        ({"retry-after": "-3"}, None),
        ({"retry-after": "nan"}, None),
        ({}, None),
    ],
)
def test_the_wait_that_a_provider_asks_for_is_read_in_every_form(
    headers: dict[str, str], seconds: float | None
) -> None:
    assert retry_after(headers, now=10.0) == seconds


@pytest.mark.parametrize(
    ("body", "seconds"),
    [
        ({"error": {"message": "Limit reached. Try again in 6.78s."}}, 6.78),
        ({"error": {"message": "Please retry in 250ms."}}, 0.25),
        ([{"error": {"message": "x", "details": [{"retryDelay": "31s"}]}}], 31.0),
    ],
)
def test_a_wait_in_the_body_counts_when_no_header_has_one(body: Any, seconds: float) -> None:
    assert refused(429, body).retry_after == seconds
    assert refused(429, body, {"retry-after": "2"}).retry_after == 2.0


@pytest.mark.parametrize("name", ["x-request-id", "request-id", "apim-request-id", "cf-ray"])
def test_the_request_id_is_found_in_each_providers_header(name: str) -> None:
    assert request_id({name: "r-1"}) == "r-1"
    assert refused(500, {}, {name: "r-1"}).request_id == "r-1"


@pytest.mark.parametrize(
    ("body", "cls", "retryable"),
    [
        ({"error": {"code": 502, "message": "x"}}, ServerError, True),
        ({"error": {"status_code": 400, "message": "x"}}, BadRequestError, False),
        ({"error": {"code": 401, "message": "x"}}, AuthenticationError, False),
        ({"error": {"message": "Rate limit reached"}}, RateLimitError, True),
        ({"error": {"code": "insufficient_quota", "message": "x"}}, RateLimitError, False),
        ({"error": {"code": "server_error", "message": "x"}}, ServerError, True),
        ({"error": {"message": "The engine is overloaded"}}, ServerError, True),
        ({"error": {"message": "upstream timed out"}}, ProviderTimeoutError, True),
        ({"error": {"message": "HTTP 503 from below"}}, ServerError, True),
        ({"error": {"message": "(429) slow down"}}, RateLimitError, True),
        ({"error": {"message": "Invalid API key"}}, AuthenticationError, False),
        ({"error": {"type": "invalid_request_error"}}, BadRequestError, False),
        ({"error": {"message": "model `x` does not exist"}}, BadRequestError, False),
        ({"error": {"message": "context length exceeded"}}, ContextOverflowError, False),
        ({"error": {"message": "we wrote 500 tokens and then something broke"}}, ServerError, True),
        ({"error": "who knows"}, ServerError, True),
    ],
)
def test_an_error_inside_an_answer_is_classed_by_its_code_and_words(
    body: Any, cls: type[ModelError], retryable: bool
) -> None:
    error = told(body)
    assert type(error) is cls
    assert error.retryable is retryable


def test_a_number_in_running_text_is_no_status() -> None:
    assert told({"error": {"message": "we wrote 500 tokens"}}).status is None
    assert told({"error": {"message": "failed with status: 503"}}).status == 503


def test_a_key_that_a_provider_repeats_does_not_reach_the_error() -> None:
    body = {"error": {"message": "Incorrect API key: sk-secret-1234", "hint": "sk-secret-1234"}}
    for error in (
        refused(401, body, secrets=["sk-secret-1234"]),
        told(body, secrets=["sk-secret-1234"]),
    ):
        assert "sk-secret" not in str(error) + repr(error) + repr(error.raw)


class _Base(Exception):
    pass


def _exception(name: str, *parents: str, text: str = "x") -> Exception:
    base: type[Exception] = _Base
    for parent in (*reversed(parents), name):
        base = type(parent, (base,), {})
    return base(text)


@pytest.mark.parametrize(
    ("names", "cls"),
    [
        (("ReadTimeout", "TimeoutException", "TransportError"), ProviderTimeoutError),
        (("ConnectTimeout", "TimeoutException", "TransportError"), ProviderTimeoutError),
        (("ConnectError", "NetworkError", "TransportError"), NetworkError),
        (("RemoteProtocolError", "ProtocolError", "TransportError"), NetworkError),
        (("ReadError", "NetworkError", "TransportError"), NetworkError),
    ],
)
def test_failures_of_an_http_library_are_told_by_their_names(
    names: tuple[str, ...], cls: type[ModelError]
) -> None:
    error = error_from_exception(_exception(*names), provider="p", model="m")
    assert type(error) is cls
    assert error.retryable


def test_a_connection_reset_below_the_http_library_is_a_network_error() -> None:
    error = error_from_exception(ConnectionResetError("reset"), provider="p", model="m")
    assert isinstance(error, NetworkError)


def test_a_header_that_cannot_be_sent_is_not_quoted() -> None:
    broken = _exception("LocalProtocolError", "TransportError", text="Illegal value b'sk-secret'")
    error = error_from_exception(broken, provider="p", model="m")
    assert isinstance(error, ConfigurationError)
    assert "sk-secret" not in str(error)


def test_what_is_no_failure_of_http_is_left_alone() -> None:
    assert error_from_exception(ValueError("x"), provider="p", model="m") is None


def test_a_key_that_json_writes_with_escapes_is_blotted_out_too() -> None:
    body = rb'{"error": {"message": "no such key: k\u0065y\/1234"}}'
    error = refused(401, body, {"x-request-id": "of key/1234"}, secrets=["key/1234"])
    assert "key/1234" not in f"{error} {error!r} {error.raw}"
    assert error.message == "no such key: [redacted]"
    assert error.request_id == "of [redacted]"


@pytest.mark.parametrize("page", [b"<" * 2**20, b"<title" * 2**18, b"<html>" + b"<p " * 2**18])
def test_a_page_of_open_tags_takes_no_time(page: bytes) -> None:
    began = time.process_time()
    assert refused(500, page).status == 500
    assert time.process_time() - began < 5  # as a whole it would take minutes


def test_a_status_of_thousands_of_digits_is_none() -> None:
    assert told({"error": {"code": "9" * 5_000, "message": "odd"}}).status is None


def google(quota: str) -> dict[str, Any]:
    violations = [{"quotaId": f"GenerateRequests{quota}PerProjectPerModel-FreeTier"}]
    details = [{"violations": violations}, {"@type": "…/google.rpc.RetryInfo", "retryDelay": "17s"}]
    message = "You exceeded your current quota, please check your plan and billing details."
    error = {"code": 429, "message": message, "status": "RESOURCE_EXHAUSTED", "details": details}
    return {"error": error}


@pytest.mark.parametrize(("quota", "retryable"), [("PerMinute", True), ("PerDay", False)])
def test_googles_quota_is_tried_again_if_it_counts_by_the_minute(
    quota: str, retryable: bool
) -> None:
    for body in (google(quota), [google(quota)]):
        for error in (refused(429, body), told(body)):
            assert (type(error), error.code) == (RateLimitError, "RESOURCE_EXHAUSTED")
            assert (error.retryable, error.retry_after) == (retryable, 17.0)


def test_googles_word_on_a_bad_key_counts_for_more_than_its_status() -> None:
    error = {"code": 400, "message": "no", "details": [{"reason": "API_KEY_INVALID"}]}
    assert type(refused(400, {"error": error})) is AuthenticationError


@pytest.mark.parametrize(
    ("kind", "cls", "retryable"),
    [
        ("overloaded_error", ServerError, True),
        ("api_error", ServerError, True),
        ("rate_limit_error", RateLimitError, True),
        ("billing_error", RateLimitError, False),
        ("timeout_error", ProviderTimeoutError, True),
        ("authentication_error", AuthenticationError, False),
        ("invalid_request_error", BadRequestError, False),
        ("not_found_error", BadRequestError, False),
        ("request_too_large", BadRequestError, False),
    ],
)
def test_anthropics_kinds_decide_where_a_stream_has_no_status(
    kind: str, cls: type[ModelError], retryable: bool
) -> None:
    body = {"type": "error", "error": {"type": kind, "message": "x"}, "request_id": "req_1"}
    error = told(body)
    assert (type(error), error.retryable) == (cls, retryable)
    assert (error.code, error.request_id) == (kind, "req_1")


def test_the_name_of_an_error_event_is_no_code() -> None:
    assert told({"error": {"type": "error", "code": None, "message": "x"}}).code is None
