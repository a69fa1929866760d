"""The tokens of a picture, by how large it is."""

import binascii

from ..message import ImageBlock

_TOKENS = 1_024
"""About what providers take for a picture of a thousand pixels a side."""
_SMALL_TOKENS = 85
"""What OpenAI takes for a picture with ``detail="low"``."""
_PIXELS_PER_TOKEN = 750
_MOST_TOKENS = 1_600
"""As Anthropic counts pictures; larger ones are scaled down to about 1.15 million pixels."""
_HEAD = 128 * 1_024
"""Characters of Base64 that the size is looked for in: before it may come what a camera notes."""


def image_tokens(block: ImageBlock) -> int:
    """Return about how many tokens a picture is; by its pixels, where it is at hand."""
    if block.detail == "low":
        return _SMALL_TOKENS
    size = _size(_beginning(block.data)) if block.data is not None else None
    if size is None:
        return _TOKENS
    width, height = size
    return max(_SMALL_TOKENS, min(-(-width * height // _PIXELS_PER_TOKEN), _MOST_TOKENS))


def _beginning(data: str) -> bytes:
    head = data[:_HEAD]
    try:
        return binascii.a2b_base64(head[: len(head) // 4 * 4])
    except ValueError:
        return b""


def _size(head: bytes) -> tuple[int, int] | None:
    """Return width and height of a PNG, GIF, WebP or JPEG; ``None`` where they are not found."""
    if head[:8] == b"\x89PNG\r\n\x1a\n" and len(head) >= 24:
        return _big(head[16:20]), _big(head[20:24])
    if head[:4] == b"GIF8" and len(head) >= 10:
        return _little(head[6:8]), _little(head[8:10])
    if head[:4] == b"RIFF" and head[8:12] == b"WEBP" and len(head) >= 30:
        return _webp_size(head)
    if head[:2] == b"\xff\xd8":
        return _jpeg_size(head)
    return None


def _webp_size(head: bytes) -> tuple[int, int] | None:
    """By the three forms of a first chunk (RFC 9649, 2.5 to 2.7)."""
    match head[12:16]:
        case b"VP8X":
            return _little(head[24:27]) + 1, _little(head[27:30]) + 1
        case b"VP8L":
            bits = _little(head[21:25])
            return (bits & 0x3FFF) + 1, (bits >> 14 & 0x3FFF) + 1
        case b"VP8 ":
            return _little(head[26:28]) & 0x3FFF, _little(head[28:30]) & 0x3FFF
        case _:
            return None


def _jpeg_size(head: bytes) -> tuple[int, int] | None:
    """By the frame header (ITU-T T.81, B.2.2), which comes after segments that tell their length."""
    at = 2
    while at + 9 <= len(head) and head[at] == 0xFF:
        marker = head[at + 1]
        if marker == 0xFF:
            at += 1
        elif 0xC0 <= marker <= 0xCF and marker not in (0xC4, 0xC8, 0xCC):
            return _big(head[at + 7 : at + 9]), _big(head[at + 5 : at + 7])
        else:
            at += 2 + _big(head[at + 2 : at + 4])
    return None


def _big(data: bytes) -> int:
    return int.from_bytes(data, "big")


def _little(data: bytes) -> int:
    return int.from_bytes(data, "little")
