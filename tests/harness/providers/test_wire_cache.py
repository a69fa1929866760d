import gc
from collections.abc import Sequence

from tinyagents.harness.memo import MessageCache, ToolsetCache
from tinyagents.harness.message import Message, TextBlock, UserMessage
from tinyagents.harness.model import ToolSchema


def schema(name: str) -> ToolSchema:
    return ToolSchema(name=name, description="", parameters={"type": "object"})


def test_a_message_is_encoded_anew_when_its_blocks_or_what_it_depends_on_change() -> None:
    encoded: list[tuple[str, int]] = []

    def encode(message: Message, key: int) -> str:
        encoded.append((message.text, key))
        return message.text

    cache = MessageCache(encode)
    message = UserMessage(content="a")
    assert [cache.of(message, key) for key in (1, 1, 2)] == ["a", "a", "a"]
    message.content.append(TextBlock(text="b"))
    assert [cache.of(message, 2), cache.of(message, 2)] == ["ab", "ab"]
    assert encoded == [("a", 1), ("a", 2), ("ab", 2)]


def test_what_is_kept_of_a_message_goes_with_it() -> None:
    class Form:
        pass

    cache = MessageCache[int, Form](lambda _message, _key: Form())
    message = UserMessage(content="a")
    cache.of(message, 0)
    del message
    gc.collect()
    assert not [each for each in gc.get_objects() if isinstance(each, Form)]


def test_the_last_few_lists_of_tools_are_kept() -> None:
    encoded: list[int] = []

    def encode(tools: Sequence[ToolSchema]) -> int:
        encoded.append(len(encoded))
        return encoded[-1]

    cache = ToolsetCache(encode)
    sets = [[schema(str(n))] for n in range(9)]
    assert [cache.of(sets[0]), cache.of([*sets[0]])] == [0, 0]
    assert cache.of([schema("0")]) == 1
    for each in sets[1:]:
        cache.of(each)
    before = len(encoded)
    cache.of(sets[-1])
    assert len(encoded) == before
    cache.of(sets[0])
    assert len(encoded) == before + 1
