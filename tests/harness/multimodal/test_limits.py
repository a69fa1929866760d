"""The defaults of the limits, and the bounds that they are held between."""

import pytest

from tinyagents.harness.errors import MediaInputError
from tinyagents.harness.multimodal import FileLimits, ImageLimits, InputPolicy

MIB = 2**20
OFFICE = "application/vnd.openxmlformats-officedocument"


def test_the_defaults() -> None:
    images, files = ImageLimits(), FileLimits()
    assert (images.max_images, images.max_bytes) == (4, 8 * MIB)
    assert images.types == {"image/png", "image/jpeg", "image/webp", "image/gif", "image/bmp"}
    assert (files.max_files, files.max_bytes, files.max_characters) == (4, 16 * MIB, 50_000)
    assert files.types == {
        *("application/pdf", "text/plain", "text/csv", "text/markdown", "application/zip"),
        f"{OFFICE}.spreadsheetml.sheet",
        f"{OFFICE}.wordprocessingml.document",
        f"{OFFICE}.presentationml.presentation",
        "application/octet-stream",
    }
    assert images.effective() == images
    assert files.effective() == files


@pytest.mark.parametrize(("asked", "count", "size"), [(-1, 1, 1), (0, 1, 1), (999, 16, 20)])
def test_limits_of_images_are_held_between_bounds(asked: int, count: int, size: int) -> None:
    effective = ImageLimits(max_images=asked, max_bytes=asked * MIB).effective()
    assert (effective.max_images, effective.max_bytes) == (count, size * MIB)


@pytest.mark.parametrize(
    ("asked", "count", "size", "text"),
    [(-1, 1, 1, 1_000), (0, 1, 1, 1_000), (500_000, 16, 50, 200_000)],
)
def test_limits_of_files_are_held_between_bounds(
    asked: int, count: int, size: int, text: int
) -> None:
    limits = FileLimits(max_files=asked, max_bytes=asked * MIB, max_characters=asked)
    effective = limits.effective()
    assert (effective.max_files, effective.max_bytes) == (count, size * MIB)
    assert effective.max_characters == text


def test_no_files_is_a_flag_and_no_limit() -> None:
    assert FileLimits().enabled
    assert not FileLimits(max_files=0).enabled
    assert FileLimits(max_files=0).effective().max_files == 1


@pytest.mark.parametrize(
    ("policy", "images", "files", "media", "limit"),
    [
        (InputPolicy(), 5, 0, "image", 4),
        (InputPolicy(), 0, 5, "file", 4),
        (InputPolicy(images=ImageLimits(max_images=99)), 17, 0, "image", 16),
        (InputPolicy(files=FileLimits(max_files=0)), 0, 1, "file", 0),
    ],
)
def test_too_many_are_refused(
    policy: InputPolicy, images: int, files: int, media: str, limit: int
) -> None:
    with pytest.raises(MediaInputError) as caught:
        policy.check_count(images=images, files=files)
    error = caught.value
    assert (error.media, error.reason, error.limit) == (media, "count", limit)
    assert str(limit) in str(error)


def test_as_many_as_are_allowed_are() -> None:
    InputPolicy().check_count(images=4, files=4)
    InputPolicy(files=FileLimits(max_files=0)).check_count(images=4)
