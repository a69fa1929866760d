"""Checks of a request on the wire, whatever its format: what must be in it, and what must not."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, cast

from ...message import MediaBlock, Message, TextBlock
from ...model import JsonSchemaFormat, ModelProfile, ModelRequest, ModelSettings
from ...text import parse_json
from ._wire import WireRequest

REGISTERED = "registered-name"
"""What requests call the model, where they name one: a name of the application's registry."""

_NUMBERS = ("max_tokens", "temperature", "top_p", "seed")
"""Settings that are one number."""


def leaves(value: Any) -> Iterator[Any]:
    """Return the strings, numbers and other scalars of a JSON value, in order."""
    items = _items(value)
    if items is None:
        yield value
    else:
        for item in items:
            yield from leaves(item)


def keys(value: Any) -> Iterator[str]:
    """Return the names of all fields of a JSON value."""
    if isinstance(value, Mapping):
        yield from cast("Mapping[str, Any]", value)
    for item in _items(value) or ():
        yield from keys(item)


def _items(value: Any) -> Iterable[Any] | None:
    if isinstance(value, Mapping):
        return cast("Mapping[str, Any]", value).values()
    return cast("Iterable[Any]", value) if isinstance(value, list) else None


def find(requests: Sequence[WireRequest], request: ModelRequest) -> WireRequest:
    """Return what was sent last for a request, told by its last text."""
    assert requests, "nothing was sent, and yet there is an answer: where does it come from?"
    texts = list(_texts(request.messages))
    told = (sent for sent in reversed(requests) if texts and texts[-1] in _words(sent.document))
    return next(told, requests[-1])


def check_texts(document: Any, messages: Sequence[Message]) -> None:
    """Check that each text arrives once and in order, system messages apart."""
    words = _words(document)
    systems = [message for message in messages if message.role == "system"]
    others = [message for message in messages if message.role != "system"]
    for group in (systems, others):
        place = -1
        for text in _texts(group):
            count = words.count(text)
            assert count == 1, f"{text!r} was sent {count} times: the model would " + (
                "not know of it" if count == 0 else "be told it again"
            )
            assert words.index(text) > place, (
                f"{text!r} was sent before what was said before it: the model would read the "
                "conversation in another order"
            )
            place = words.index(text)


def check_arguments(document: Any, messages: Sequence[Message]) -> None:
    """Check that the model is shown what it called tools with, as JSON or as text of JSON."""
    found = {*map(repr, leaves(document))}
    for value in leaves(document):
        if isinstance(value, str) and value.startswith("{"):
            found.update(map(repr, leaves(_parsed(value))))
    for message in messages:
        for call in message.tool_calls if message.role == "assistant" else ():
            lost = [value for value in leaves(call.arguments) if repr(value) not in found]
            assert not lost, (
                f"{lost} of the arguments of a call were not sent as they were: the model would read "
                "that it had asked for something else"
            )


def check_media(document: Any, messages: Sequence[Message]) -> None:
    """Check that each file arrives whole."""
    words = _words(document)
    for message in messages:
        for block in message.content:
            if isinstance(block, MediaBlock) and block.data is not None:
                assert block.data in words, (
                    f"the {block.type} of a message of the role `{message.role}` was not sent and "
                    "not refused: the model would answer without having seen it"
                )


def check_forms(document: Any, request: ModelRequest) -> None:
    """Check that the tools and the schema of the answer are sent."""
    words = _words(document)
    for tool in request.tools if request.tool_choice != "none" else ():
        assert tool.description in words, (
            f"the description of `{tool.name}` was not sent: the model would guess what it is for"
        )
    if isinstance(request.response_format, JsonSchemaFormat):
        properties = cast("Mapping[str, Any]", request.response_format.schema.get("properties", {}))
        names = {*keys(document)}
        missing = [name for name in properties if name not in names and name not in words]
        assert not missing, (
            f"the schema was sent without {missing}: the answer would lack them, and be refused"
        )


def check_settings(document: Any, settings: ModelSettings, profile: ModelProfile) -> None:
    """Check that what was set is sent: what has no form is to be refused, not dropped."""
    found = list(leaves(document))
    words = _words(document)
    numbers = [value for value in found if isinstance(value, int | float)]
    for name in _NUMBERS:
        value = getattr(settings, name)
        if value is None or (name == "temperature" and profile.temperature is False):
            continue
        assert value in numbers, _dropped(name, value)
    for text in settings.stop:
        assert text in words, _dropped("stop", text)
    for value in settings.provider_options.values():
        assert value in found, _dropped("provider_options", value)


def check_private(sent: WireRequest, secrets: Iterable[str]) -> None:
    """Check that nothing is in a request that is not the provider's business."""
    text = sent.body.decode("utf-8", "replace")
    for secret in secrets:
        assert secret not in text, (
            f"{secret!r} stands in the body: it is not for this provider to see"
        )
        assert secret not in sent.target, (
            f"{secret!r} stands in the address, which proxies and loggers write down"
        )


def check_ids(calls: Sequence[str], results: Sequence[str], messages: Sequence[Message]) -> None:
    """Check that each result names the call that it answers."""
    own = [
        call.id
        for message in messages
        if message.role == "assistant"
        for call in message.tool_calls
    ]
    assert len(calls) == len(own), f"{len(own)} calls were made and {len(calls)} were sent"
    assert len(set(calls)) == len(calls), (
        f"calls were sent with the same id, {list(calls)}: the provider could not tell them apart"
    )
    sent_as = dict(zip(own, calls, strict=True))
    expected = [sent_as[message.tool_call_id] for message in messages if message.role == "tool"]
    assert list(results) == expected, (
        f"the results were sent for the calls {list(results)} and answer {expected}: the provider "
        "would refuse the request, or take one for another"
    )


def _texts(messages: Iterable[Message]) -> Iterator[str]:
    for message in messages:
        for block in message.content:
            if isinstance(block, TextBlock) and block.text:
                yield block.text


def _parsed(text: str) -> Any:
    try:
        return parse_json(text)
    except ValueError:
        return text


def _words(document: Any) -> str:
    return "\0".join(value for value in leaves(document) if isinstance(value, str))


def _dropped(name: str, value: object) -> str:
    return (
        f"the setting `{name}` was neither sent ({value!r} is not in the body) nor refused: it would "
        "have no effect, and nobody would know"
    )
