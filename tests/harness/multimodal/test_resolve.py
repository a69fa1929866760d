"""Texts with markers that become messages."""

from pathlib import Path

import pytest

from tests.harness.multimodal.media import PDF, PNG, uri
from tinyagents import AgentHarness
from tinyagents.harness.errors import MediaInputError
from tinyagents.harness.message import FileBlock, ImageBlock, TextBlock, UserMessage
from tinyagents.harness.multimodal import FileLimits, InputPolicy, load_file, resolve_markers
from tinyagents.testkit import ScriptedModel, say


async def test_a_text_becomes_a_message_with_what_its_markers_name(tmp_path: Path) -> None:
    (tmp_path / "a.png").write_bytes(PNG)
    (tmp_path / "b.csv").write_text("x,y")
    policy = InputPolicy(root=tmp_path)
    message = await resolve_markers(
        f"Compare [FILE:b.csv] with [IMAGE:a.png] and [FILE:{uri(PDF)}]", policy=policy
    )
    assert message == UserMessage(
        content=[
            TextBlock(text="Compare  with  and"),
            (await load_file("b.csv", policy=policy)).as_text(),
            ImageBlock.from_bytes(PNG, "image/png"),
            (await load_file(uri(PDF))).as_text(),
        ]
    )


async def test_a_text_without_markers_is_a_plain_message() -> None:
    assert await resolve_markers("hello", policy=InputPolicy()) == UserMessage(content="hello")
    assert await resolve_markers("", policy=InputPolicy()) == UserMessage(content=[])


async def test_a_marker_alone_is_a_message_without_text() -> None:
    message = await resolve_markers(f"[IMAGE:{uri(PNG)}]", policy=InputPolicy())
    assert message.content == [ImageBlock.from_bytes(PNG, "image/png")]


async def test_files_of_some_types_are_sent_whole() -> None:
    policy = InputPolicy(send_whole=["application/pdf"])
    message = await resolve_markers(f"[FILE:{uri(PDF)}] [FILE:{uri(b'a')}]", policy=policy)
    whole, text = message.content
    assert whole == FileBlock.from_bytes(PDF, "application/pdf", "file.pdf")
    assert isinstance(text, TextBlock)


async def test_markers_inside_a_file_are_text(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("[IMAGE:b.png] [FILE:/etc/passwd]")
    (tmp_path / "b.png").write_bytes(PNG)
    message = await resolve_markers("[FILE:a.txt]", policy=InputPolicy(root=tmp_path))
    (block,) = message.content
    assert isinstance(block, TextBlock)
    assert block.text.endswith("\n[IMAGE:b.png] [FILE:/etc/passwd]")


@pytest.mark.parametrize(
    ("text", "policy", "media"),
    [
        ("[IMAGE:a]" * 5, InputPolicy(), "image"),
        ("[FILE:a]" * 5, InputPolicy(), "file"),
        ("[FILE:a]", InputPolicy(files=FileLimits(max_files=0)), "file"),
    ],
)
async def test_too_many_are_refused_before_any_is_loaded(
    text: str, policy: InputPolicy, media: str
) -> None:
    with pytest.raises(MediaInputError) as caught:
        await resolve_markers(text, policy=policy)
    assert (caught.value.media, caught.value.reason) == (media, "count")


async def test_one_that_fails_fails_the_message() -> None:
    with pytest.raises(MediaInputError) as caught:
        await resolve_markers(f"[IMAGE:{uri(PNG)}] [FILE:{uri(b'', 'a/b')}]", policy=InputPolicy())
    assert (caught.value.media, caught.value.reason) == ("file", "type")


async def test_the_message_is_the_input_of_a_run() -> None:
    model = ScriptedModel([say("A cat.")])
    message = await resolve_markers(f"What is it? [IMAGE:{uri(PNG)}]", policy=InputPolicy())
    run = await AgentHarness(model=model).invoke(None, message)
    assert run.text == "A cat."
    assert run.messages[0] == message
