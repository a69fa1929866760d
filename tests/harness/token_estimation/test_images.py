"""Pictures weigh by their size, where it can be read."""

import struct
from base64 import b64encode
from collections.abc import Callable

import pytest

from tinyagents import ImageBlock, UserMessage
from tinyagents.harness.token_estimation import TokenEstimator

NONE = TokenEstimator().message(UserMessage(content=[]))


def weight(image: ImageBlock) -> int:
    return TokenEstimator().message(UserMessage(content=[image])) - NONE


def png(width: int, height: int) -> bytes:
    return b"\x89PNG\r\n\x1a\n" + struct.pack(">I4sII", 13, b"IHDR", width, height) + bytes(9)


def gif(width: int, height: int) -> bytes:
    return b"GIF89a" + struct.pack("<HH", width, height) + bytes(9)


def jpeg(width: int, height: int, note: int = 0) -> bytes:
    notes = b"\xff\xe1" + struct.pack(">H", note + 2) + b"e" * note
    frame = b"\xff\xc0" + struct.pack(">HBHH", 17, 8, height, width) + bytes(9)
    return b"\xff\xd8" + notes + b"\xff" + frame


def webp(chunk: bytes, rest: bytes) -> bytes:
    return b"RIFF" + bytes(4) + b"WEBP" + chunk + bytes(4) + rest + bytes(9)


def webp_extended(width: int, height: int) -> bytes:
    sides = (width - 1).to_bytes(3, "little") + (height - 1).to_bytes(3, "little")
    return webp(b"VP8X", bytes(4) + sides)


def webp_lossless(width: int, height: int) -> bytes:
    return webp(b"VP8L", b"\x2f" + struct.pack("<I", (width - 1) | (height - 1) << 14))


def webp_lossy(width: int, height: int) -> bytes:
    return webp(b"VP8 ", bytes(3) + b"\x9d\x01\x2a" + struct.pack("<HH", width, height))


KINDS = [png, gif, jpeg, webp_extended, webp_lossless, webp_lossy]


@pytest.mark.parametrize("kind", KINDS)
def test_a_picture_weighs_by_its_pixels_within_bounds(kind: Callable[[int, int], bytes]) -> None:
    sizes = [(750, 500), (16, 16), (9_000, 9_000)]
    images = [ImageBlock.from_bytes(kind(*size), "image/png") for size in sizes]
    assert [weight(image) for image in images] == [500, 85, 1_600]


def test_what_a_camera_notes_is_skipped_and_a_small_picture_is_what_was_asked_for() -> None:
    photo = jpeg(1_500, 500, note=60_000)
    assert weight(ImageBlock.from_bytes(photo, "image/jpeg")) == 1_000
    low = ImageBlock(data=b64encode(photo).decode(), media_type="image/jpeg", detail="low")
    assert weight(low) == 85


@pytest.mark.parametrize("kind", KINDS)
def test_a_picture_whose_size_cannot_be_read_weighs_what_most_do(
    kind: Callable[[int, int], bytes],
) -> None:
    whole: bytes = kind(750, 500)
    for length in range(10):
        assert weight(ImageBlock.from_bytes(whole[:length], "image/png")) == 1_024
    assert weight(ImageBlock(url="https://x.test/a.png")) == 1_024
    assert weight(ImageBlock(data="no Base64 at all", media_type="image/png")) == 1_024
