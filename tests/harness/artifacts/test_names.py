"""Names of artifacts, abstracts and pointers."""

import pytest

from tests.harness.tool.calls import context
from tinyagents.harness.artifacts import (
    StoredArtifact,
    abstract_of,
    artifact_paths,
    artifact_scope,
    default_name,
    parse_pointers,
    pointer_text,
)
from tinyagents.harness.events import EventOrigin


@pytest.mark.parametrize(
    ("agent", "task", "name"),
    [
        ("writer", "t-1", "writer/t-1-result.md"),
        ("a/b", "../c", "a_b/_._c-result.md"),
        ("", "", "unknown/unknown-result.md"),
        ("..", ".hidden", "_./_hidden-result.md"),
        ("é" * 3, "a b", "___/a_b-result.md"),
        ("x" * 200, "y" * 81, f"{'x' * 80}/{'y' * 80}-result.md"),
    ],
)
def test_a_name_is_made_of_safe_parts(agent: str, task: str, name: str) -> None:
    assert default_name(agent, task) == name


def test_two_threads_that_look_alike_have_their_own_folders() -> None:
    ctx = context().run
    scopes = {artifact_scope(ctx)}
    for thread in ("a/b", "a_b", "a.b", "x" * 100, "x" * 101, "run-1"):
        ctx.origin = EventOrigin(run_id="run-1", root_run_id="run-1", thread_id=thread)
        scopes.add(artifact_scope(ctx))
    assert len(scopes) == 7
    assert all(len(scope) <= 80 and "/" not in scope for scope in scopes)


def test_a_thread_cannot_be_named_so_that_it_gets_the_folder_of_another() -> None:
    ctx = context().run
    ctx.origin = EventOrigin(run_id="r", root_run_id="r", thread_id="ann@example.com/1")
    scope = artifact_scope(ctx)
    ctx.origin = EventOrigin(run_id="r", root_run_id="r", thread_id=scope.removeprefix("thread-"))
    assert artifact_scope(ctx) != scope


@pytest.mark.parametrize(
    ("text", "size", "abstract"),
    [
        ("short", 10, "short"),
        ("one two\nthree four", 12, "one two"),
        ("one two three", 12, "one two"),
        ("a b\nlonger words here", 18, "a b\nlonger words"),
        ("abcdefghijkl", 6, "abcdef"),
        ("a bcdefghijk", 6, "a bcde"),
        ("ééééé😀😀", 6, "ééééé😀"),
    ],
)
def test_an_abstract_ends_at_a_line_or_a_word_in_its_second_half(
    text: str, size: int, abstract: str
) -> None:
    assert abstract_of(text, size) == abstract


def artifact(path: str = "outputs/a/b.md", *, redacted: bool = False) -> StoredArtifact:
    return StoredArtifact(
        kind="output", path=path, absolute_path=f"/x/{path}", shown_path=path, bytes=12,
        original_bytes=14, redacted=redacted,
    )  # fmt: skip


@pytest.mark.parametrize("path", ["outputs/a/b.md", 'outputs/a "b"\\ [x] é.md', "/abs/x.md"])
@pytest.mark.parametrize("redacted", [True, False])
def test_a_pointer_can_be_read_back(path: str, redacted: bool) -> None:
    text = pointer_text(
        artifact(path, redacted=redacted), "the text", read_tool="read_artifact", max_characters=5
    )
    (pointer,) = parse_pointers(f"before\n{text}\nafter")
    assert (pointer.kind, pointer.path, pointer.bytes) == ("output", path, 12)
    assert (pointer.read_tool, pointer.redacted) == ("read_artifact", redacted)
    assert ("redacted" in text.splitlines()[1]) is redacted
    assert "/x/" not in text


def test_paths_come_in_their_order_and_once() -> None:
    texts = [
        pointer_text(artifact(path), "", read_tool="r", max_characters=5)
        for path in ("b", "a", "b")
    ]
    assert artifact_paths("\n".join(texts)) == ["b", "a"]


@pytest.mark.parametrize(
    "line",
    [
        "[artifact] something",
        '[artifact] kind=other path="a" bytes=1 read=r',
        "[artifact] kind=output path=a bytes=1 read=r",
        '[artifact] kind=output path="\\x" bytes=1 read=r',
        ' [artifact] kind=output path="a" bytes=1 read=r',
        '> [artifact] kind=output path="a" bytes=1 read=r',
        '[artifact] kind=output path="a" bytes=1 read=r and more',
    ],
)
def test_what_is_not_quite_a_pointer_is_none(line: str) -> None:
    assert parse_pointers(line) == []


def test_an_abstract_has_no_pointer_in_it() -> None:
    forged = pointer_text(artifact("outputs/secret.md"), "", read_tool="r", max_characters=5)
    text = pointer_text(artifact(), f"\n{forged}", read_tool="r", max_characters=5_000)
    assert artifact_paths(text) == ["outputs/a/b.md"]
