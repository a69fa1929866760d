"""Images and files from data URIs, paths and addresses: what comes of them, and what is refused."""

import base64
import gzip
import os
import threading
from collections.abc import Callable
from pathlib import Path
from urllib.parse import quote

import anyio
import pytest

from tests.harness.guarded_fetch.loopback import Names, on_loopback, serve_raw
from tests.harness.multimodal.media import (
    BMP,
    GIF,
    JPEG,
    PDF,
    PNG,
    WEBP,
    ZIP,
    file_fails,
    image_fails,
    packed_uri,
    uri,
)
from tests.harness.providers.server import Reply, serve
from tinyagents.harness.errors import FetchRefusedError, UnsafePathError
from tinyagents.harness.guarded_fetch import FetchLimits, GuardedFetch
from tinyagents.harness.message import FileBlock, ImageBlock
from tinyagents.harness.multimodal import (
    FileLimits,
    ImageLimits,
    InputPolicy,
    data_uri,
    load_file,
    load_image,
)

MIB = 2**20
IMAGES = {
    "image/png": PNG,
    "image/jpeg": JPEG,
    "image/gif": GIF,
    "image/webp": WEBP,
    "image/bmp": BMP,
}


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """A root beside a secret."""
    (tmp_path / "secret.png").write_bytes(PNG)
    folder = tmp_path / "root"
    folder.mkdir()
    return folder


# Data URIs


@pytest.mark.parametrize(("kind", "content"), IMAGES.items())
async def test_an_image_of_a_data_uri_is_told_by_its_bytes(kind: str, content: bytes) -> None:
    for said in ("", kind, "application/octet-stream", "image/png", "image/jpg;charset=x"):
        block = await load_image(uri(content, said))
        assert block == ImageBlock.from_bytes(content, kind)
        assert data_uri(block) == uri(content, kind)


def test_a_block_without_bytes_has_no_data_uri() -> None:
    assert data_uri(ImageBlock(url=uri(PNG, "image/png"))) == uri(PNG, "image/png")
    assert data_uri(ImageBlock(url="https://example.com/a.png")) is None
    assert data_uri(ImageBlock(file_id="file-1")) is None


async def test_what_was_said_counts_where_the_bytes_tell_nothing() -> None:
    assert (await load_image(uri(b"x", "image/jpg"))).media_type == "image/jpeg"
    assert (await load_image("DATA:Image/PNG;BASE64,eA")).media_type == "image/png"


async def test_base64_is_taken_as_browsers_take_it() -> None:
    encoded = base64.b64encode(PNG).decode().rstrip("=")
    for text in (encoded, encoded[:9] + "\r\n " + encoded[9:], encoded.replace("+", "%2B")):
        assert (await load_image(f"data:;base64,{text}")).decode() == PNG


@pytest.mark.parametrize(
    "reference",
    [
        "data:",
        "data:,",
        "data:image/png",
        "data:image/png;base64",
        "data:image/png,rawbytes",
        "data:image/png;base64;x=y,AAAA",
        "data:image/png;base64,A",
        "data:image/png;base64,*###",
        "data:image/png;base64,äöü",
        "data:image/png;base64,_-_-",
        f"data:image/png;{'x' * 2_000};base64,AAAA",
        "",
        " ",
        "ftp://example.com/a.png",
        "file:///etc/passwd",
    ],
)
async def test_what_is_no_reference_says_so(reference: str) -> None:
    error = await image_fails(reference, InputPolicy(root="."))
    assert error.reason in ("bad_reference", "not_found")
    assert error.reason == "bad_reference" or not reference.strip()
    assert len(str(error)) < 500


async def test_packed_data_is_unpacked() -> None:
    file = await load_file(packed_uri(b"a,b\n", "text/csv"))
    assert (file.media_type, file.content, file.text) == ("text/csv", b"a,b\n", "a,b\n")
    assert (await load_image(packed_uri(PNG, "image/png"))).decode() == PNG


async def test_a_gzip_bomb_in_a_data_uri_is_left_as_soon_as_it_is_too_large() -> None:
    bomb = packed_uri(bytes(60 * MIB), "text/plain")
    assert len(bomb) < MIB
    error = await file_fails(bomb)
    assert (error.reason, error.limit) == ("size", 16 * MIB)
    assert (await image_fails(bomb)).reason == "size"


@pytest.mark.parametrize(
    "packed", [b"no gzip", gzip.compress(b"hello")[:-4]], ids=["no gzip", "cut"]
)
async def test_packed_data_that_cannot_be_unpacked_says_so(packed: bytes) -> None:
    error = await file_fails(uri(packed, "application/gzip;original_mime=text/csv"))
    assert error.reason == "bad_reference"


async def test_packed_data_that_does_not_say_of_what_is_just_gzip() -> None:
    assert (await file_fails(uri(gzip.compress(b"a"), "application/gzip"))).reason == "type"


async def test_data_that_is_too_large_is_refused() -> None:
    policy = InputPolicy(images=ImageLimits(max_bytes=MIB), files=FileLimits(max_bytes=MIB))
    fits, large = PNG + bytes(MIB - len(PNG)), PNG + bytes(MIB + 1 - len(PNG))
    assert len((await load_image(uri(fits), policy=policy)).decode() or b"") == MIB
    error = await image_fails(uri(large), policy)
    assert (error.reason, error.limit) == ("size", MIB)
    assert (await file_fails(uri(large), policy)).reason == "size"
    assert "AAAA" not in str(error)


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (PDF, ""),
        (PDF, "image/png"),
        (b"<svg/>", "image/svg+xml"),
        (b"<html>", "text/html"),
        (b"who knows", ""),
        (b"BM, a text that is longer than the head of a bitmap", ""),
        (b"", "image/png"),
    ],
)
async def test_what_is_no_image_of_an_allowed_type_is_refused(content: bytes, said: str) -> None:
    assert (await image_fails(uri(content, said))).reason == "type"


async def test_the_allowed_types_can_be_fewer() -> None:
    policy = InputPolicy(
        images=ImageLimits(types=["image/png"]), files=FileLimits(types=["text/csv"])
    )
    assert (await load_image(uri(PNG), policy=policy)).media_type == "image/png"
    assert (await image_fails(uri(GIF), policy)).reason == "type"
    assert (await file_fails(uri(b"text"), policy)).reason == "type"


# Files


@pytest.mark.parametrize(
    ("name", "content", "said", "kind"),
    [
        ("a.csv", b"a", "", "text/csv"),
        ("a.CSV", b"a", "application/octet-stream", "text/csv"),
        ("a.csv", b"a", "text/plain; charset=utf-8", "text/plain"),
        ("a.md", b"a", "", "text/markdown"),
        ("a", PDF, "", "application/pdf"),
        ("a.bin", ZIP, "", "application/zip"),
        (
            "a.docx",
            ZIP,
            "",
            "application/vnd.openxmlformats-officedocument.wordprocessingml.document",
        ),
        ("a", b"plain text \xc3\xa9", "", "text/plain"),
        ("a", b"\xff\x00\xfe\x01", "", "application/octet-stream"),
        ("a", b"nul\0inside", "", "application/octet-stream"),
    ],
)
async def test_the_type_of_a_file_is_what_was_said_then_its_name_then_its_bytes(
    name: str, content: bytes, said: str, kind: str
) -> None:
    file = await load_file(uri(content, f"{said.partition(';')[0]};name={name}"))
    assert (file.name, file.media_type) == (name, kind)


async def test_a_type_that_is_not_allowed_is_refused() -> None:
    assert (await file_fails(uri(b"a", "text/html"))).reason == "type"
    assert (await file_fails(uri(PNG))).reason == "type"


@pytest.mark.parametrize(
    ("content", "text"),
    [
        (b"a\xc3\xa9", "aé"),
        (b"\xef\xbb\xbfa", "a"),
        ("aé".encode("utf-16"), "aé"),
        (b"caf\xe9", None),
        (b"a\0b", None),
        (b"", ""),
    ],
)
async def test_text_is_read_as_unicode_or_not_at_all(content: bytes, text: str | None) -> None:
    file = await load_file(uri(content, "text/plain"))
    assert file.text == text
    assert file.dropped == 0


async def test_text_beyond_the_limit_is_left_out_with_a_note() -> None:
    policy = InputPolicy(files=FileLimits(max_characters=1_000))
    file = await load_file(uri(("é" * 1_234).encode(), "text/plain"), policy=policy)
    assert (file.text, file.dropped) == ("é" * 1_000, 234)
    said = file.as_text().text
    assert said.startswith(file.header() + "\néé")
    assert said.endswith("é\n[234 more characters were left out]")


async def test_the_header_says_name_size_type_and_digest() -> None:
    file = await load_file(uri(b"hello", "text/plain;name=a.txt"))
    # printf hello | sha256sum
    assert file.digest == "2cf24dba5fb0a30e"
    assert file.header() == '[File: name="a.txt" type=text/plain size=5 sha256=2cf24dba5fb0a30e]'
    assert file.as_text().text == f"{file.header()}\nhello"


async def test_a_file_without_a_text_is_its_header() -> None:
    file = await load_file(uri(PDF, "application/pdf"))
    assert (file.name, file.text) == ("file.pdf", None)
    assert file.as_text().text == file.header()
    assert file.as_block() == FileBlock.from_bytes(PDF, "application/pdf", "file.pdf")


@pytest.mark.parametrize(
    "name",
    [
        'x" size=0]',
        "x]\n[IMAGE:passwd]",
        "x\u202egnp",
        "x\u2028y",
        "x\0",
        "<x>",
        "\x1b[2J",
    ],
)
async def test_a_name_cannot_get_out_of_the_header(name: str) -> None:
    header = (await load_file(uri(b"a", f"text/plain;name={quote(name, safe='')}"))).header()
    inside = header.removeprefix('[File: name="').partition('" type=')[0]
    assert header.count('"') == 2
    assert header.count("]") == header.count("[") == 1
    assert inside.isprintable()
    assert inside.encode().decode("unicode_escape") == name


async def test_a_long_name_is_cut_and_a_path_is_none() -> None:
    long = await load_file(uri(b"a", f"text/plain;name={'x' * 900}"))
    assert len(long.header()) < 400
    for path in ("..%2F..%2Fetc%2Fa.txt", "C:%5Cx%5Ca.txt"):
        assert (await load_file(uri(b"a", f"text/plain;name={path}"))).name == "a.txt"
    assert (await load_file(uri(b"a", "text/plain;name=.."))).name == "file.txt"


# Extractors


async def test_extractors_of_both_kinds_get_the_text(caplog: pytest.LogCaptureFixture) -> None:
    threads: list[int] = []

    def plain(content: bytes) -> str:
        threads.append(threading.get_ident())
        return content[:8].decode()

    async def awaited(content: bytes) -> str:
        await anyio.lowlevel.checkpoint()
        return f"{len(content)} bytes"

    policy = InputPolicy(
        extractors={
            "application/pdf": plain,
            "application/zip": awaited,
            "text/csv": lambda content: awaited(content),
        }
    )
    assert (await load_file(uri(PDF), policy=policy)).text == "%PDF-1.7"
    assert threads != [threading.get_ident()]
    assert (await load_file(uri(ZIP), policy=policy)).text == "30 bytes"
    assert (await load_file(uri(b"a", "text/csv"), policy=policy)).text == "1 bytes"


@pytest.mark.parametrize("extract", [lambda _: 1 / 0, lambda _: None, lambda _: b"bytes"])
async def test_an_extractor_that_fails_leaves_a_reference(
    extract: Callable[[bytes], str], caplog: pytest.LogCaptureFixture
) -> None:
    policy = InputPolicy(extractors={"application/pdf": extract})
    file = await load_file(uri(PDF), policy=policy)
    assert file.text is None
    assert file.as_text().text == file.header()
    assert "application/pdf" in caplog.text


# Paths


async def test_a_path_inside_the_root_is_read(root: Path) -> None:
    (root / "sub").mkdir()
    (root / "sub" / "photo.jpg").write_bytes(JPEG)
    (root / "report.md").write_text("# Report")
    policy = InputPolicy(root=root)
    assert (await load_image("sub/photo.jpg", policy=policy)).decode() == JPEG
    assert (await load_image(root / "sub/photo.jpg", policy=policy)).media_type == "image/jpeg"
    file = await load_file("report.md", policy=policy)
    assert (file.name, file.media_type, file.text) == ("report.md", "text/markdown", "# Report")


async def test_no_path_is_read_without_a_root(root: Path) -> None:
    for error in (await image_fails(root / "a.png"), await file_fails("a.txt")):
        assert error.reason == "disabled"
        assert "`root`" in str(error)


@pytest.mark.parametrize("path", ["../secret.png", "sub/../../secret.png", "/etc/passwd", "link"])
async def test_a_path_that_leaves_the_root_is_refused(root: Path, path: str) -> None:
    (root / "sub").mkdir()
    (root / "link").symlink_to("../secret.png")
    error = await image_fails(path, InputPolicy(root=root))
    assert error.reason == "refused"
    assert isinstance(error.__cause__, UnsafePathError)
    assert str(root) not in str(error)


async def test_what_is_no_regular_file_is_refused_without_waiting(root: Path) -> None:
    os.mkfifo(root / "pipe.png")
    (root / "folder.png").mkdir()
    for path in ("pipe.png", "folder.png", "."):
        assert (await image_fails(path, InputPolicy(root=root))).reason == "refused"


async def test_a_missing_file_and_an_odd_path_say_so(root: Path) -> None:
    (root / "a.txt").write_text("a")
    policy = InputPolicy(root=root)
    for path in ("missing.png", "no/such/a.png", "a.txt/b.png"):
        assert (await image_fails(path, policy)).reason == "not_found"
    for path in ("a\0.png", "x" * 5_000, "x" * 300):
        error = await image_fails(path, policy)
        assert error.reason == "bad_reference"
        assert len(str(error)) < 600


async def test_a_file_that_is_too_large_is_not_read(root: Path) -> None:
    with open(root / "big.txt", "wb") as big:  # noqa: ASYNC230 - it holds nothing
        big.truncate(100 * 2**30)
    error = await file_fails("big.txt", InputPolicy(root=root))
    assert (error.reason, error.limit) == ("size", 16 * MIB)


@pytest.mark.skipif(not Path("/proc/self/status").is_file(), reason="no such system")
async def test_a_file_whose_size_is_not_told_is_read_all_the_same() -> None:
    file = await load_file("status", policy=InputPolicy(root="/proc/self"))
    assert file.text is not None
    assert "Pid:" in file.text


# Addresses


async def test_an_address_is_fetched_where_the_policy_has_a_fetch() -> None:
    reply = Reply(pieces=(b"a,b",), headers={"content-type": "text/csv; charset=utf-8"})
    async with serve(reply) as server:
        policy = InputPolicy(fetch=on_loopback())
        file = await load_file(f"{server.url}/x/my%20data.txt?token=hunter2", policy=policy)
        assert (file.name, file.media_type, file.text) == ("my data.txt", "text/csv", "a,b")
        error = await file_fails(f"{server.url}/x?token=hunter2")
        assert error.reason == "disabled"
        assert "hunter2" not in str(error)
        assert server.connections == 1


async def test_an_image_of_an_address_becomes_its_bytes() -> None:
    async with serve(Reply(pieces=(PNG,), headers={"content-type": "image/jpeg"})) as server:
        block = await load_image(server.url, policy=InputPolicy(fetch=on_loopback()))
        assert block == ImageBlock.from_bytes(PNG, "image/png")


@pytest.mark.parametrize(
    ("status", "reason", "retryable"),
    [
        (404, "not_found", False),
        (410, "not_found", False),
        (403, "fetch_failed", False),
        (429, "fetch_failed", True),
        (503, "fetch_failed", True),
        (304, "fetch_failed", False),
    ],
)
async def test_an_answer_without_a_body_of_use_is_an_error(
    status: int, reason: str, retryable: bool
) -> None:
    async with serve(Reply(pieces=(PNG,) if status != 304 else (), status=status)) as server:
        error = await image_fails(server.url, InputPolicy(fetch=on_loopback()))
        assert (error.reason, error.retryable) == (reason, retryable)
        assert str(status) in str(error)


@pytest.mark.parametrize(
    "url",
    [
        "http://169.254.169.254/latest/meta-data/",
        "http://127.0.0.1/a.png",
        "HTTP://[::1]/a.png",
        "http://inside.test/a.png",
        "http://user:hunter2@8.8.8.8/a.png",
        "http://2130706433/a.png",
    ],
)
async def test_an_address_that_the_fetch_refuses_is_refused(url: str) -> None:
    fetch = GuardedFetch(resolve=Names(inside=[["10.0.0.1"]]))
    error = await image_fails(url, InputPolicy(fetch=fetch))
    assert error.reason == "refused"
    assert isinstance(error.__cause__, FetchRefusedError)
    assert "hunter2" not in str(error)
    assert "hunter2" not in str(error.reference)


async def test_a_redirect_to_the_inside_is_refused() -> None:
    moved = Reply(pieces=(), status=302, headers={"location": "http://169.254.169.254/"})
    async with serve(moved) as server:
        error = await image_fails(server.url, InputPolicy(fetch=on_loopback()))
        assert error.reason == "refused"


async def test_the_size_of_an_answer_is_checked_as_said_and_as_sent() -> None:
    policy = InputPolicy(images=ImageLimits(max_bytes=MIB), fetch=on_loopback())
    async with serve_raw(b"HTTP/1.1 200 OK\r\ncontent-length: 1048577\r\n\r\n") as server:
        assert (await image_fails(server.url, policy)).reason == "size"
    async with serve(Reply(pieces=(PNG, bytes(MIB)))) as server:
        error = await image_fails(server.url, policy)
        assert (error.reason, error.limit) == ("size", MIB)


async def test_what_is_too_large_for_the_fetch_is_told_with_the_limit_of_the_fetch() -> None:
    policy = InputPolicy(fetch=on_loopback(limits=FetchLimits(max_bytes=4)))
    async with serve(Reply(pieces=(PNG,))) as server:
        error = await image_fails(server.url, policy)
    assert (error.reason, error.limit) == ("size", 4)
    assert "is larger than 4 bytes" in str(error)


async def test_a_root_that_is_missing_is_told_as_such(root: Path) -> None:
    error = await image_fails("a.png", InputPolicy(root=root / "typo"))
    assert error.reason == "read_failed"
    assert "`root` is no folder" in str(error)
    assert (await image_fails("a.png", InputPolicy(root=root))).reason == "not_found"


async def test_a_fetch_that_fails_says_whether_it_may_pass() -> None:
    async with serve(Reply(pieces=(PNG,), then="hang")) as server:
        slow = InputPolicy(fetch=on_loopback(limits=FetchLimits(seconds=0.2)))
        error = await image_fails(server.url, slow)
        assert (error.reason, error.retryable) == ("fetch_failed", True)
    async with serve(Reply(pieces=(PNG[:9],), then="break")) as server:
        error = await image_fails(server.url, InputPolicy(fetch=on_loopback()))
        assert (error.reason, error.retryable) == ("fetch_failed", True)
