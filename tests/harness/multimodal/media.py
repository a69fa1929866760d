"""The smallest contents that are told apart, and references to them."""

import base64
import gzip
from pathlib import Path

import pytest

from tinyagents.harness.errors import MediaInputError
from tinyagents.harness.multimodal import InputPolicy, load_file, load_image

PNG = b"\x89PNG\r\n\x1a\n" + bytes(16)
JPEG = b"\xff\xd8\xff\xe0" + bytes(16)
GIF = b"GIF89a" + bytes(16)
WEBP = b"RIFF\x10\0\0\0WEBPVP8 " + bytes(8)
BMP = b"BM" + (58).to_bytes(4, "little") + bytes(4) + (54).to_bytes(4, "little") + bytes(44)
PDF = b"%PDF-1.7\n%\xe2\xe3\xcf\xd3\n"
ZIP = b"PK\x03\x04" + bytes(26)


def uri(content: bytes, kind: str = "") -> str:
    return f"data:{kind};base64,{base64.b64encode(content).decode()}"


def packed_uri(content: bytes, kind: str) -> str:
    return uri(gzip.compress(content), f"application/gzip;original_mime={kind}")


async def image_fails(reference: str | Path, policy: InputPolicy | None = None) -> MediaInputError:
    with pytest.raises(MediaInputError) as caught:
        await load_image(reference, policy=policy or InputPolicy())
    assert caught.value.media == "image"
    return caught.value


async def file_fails(reference: str | Path, policy: InputPolicy | None = None) -> MediaInputError:
    with pytest.raises(MediaInputError) as caught:
        await load_file(reference, policy=policy or InputPolicy())
    assert caught.value.media == "file"
    return caught.value
