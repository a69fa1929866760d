"""Undoing gzip a bounded piece at a time, so that nothing small can become something huge."""

import zlib

__all__ = ("Gunzip",)

_LARGEST_PIECE = 2**20
"""Bytes that are unpacked at a time: a kilobyte of gzip may stand for a megabyte."""


class Gunzip:
    """Unpacks what it is fed; whoever takes the pieces counts them."""

    __slots__ = ("_gzip", "_packed", "fed")

    def __init__(self) -> None:
        self._gzip = zlib.decompressobj(zlib.MAX_WBITS | 16)
        self._packed: bytes | None = None
        self.fed: int = 0
        """How many packed bytes there have been."""

    @property
    def complete(self) -> bool:
        """Whether the end of the packed data was reached, and its checksum was right."""
        return self._gzip.eof

    def feed(self, packed: bytes) -> None:
        """Take the next packed bytes, once those before have no piece left."""
        self.fed += len(packed)
        # Behind its end nothing counts, and zlib would keep it.
        self._packed = None if self._gzip.eof else packed

    def piece(self) -> bytes:
        """Return the next piece, of at most a mebibyte; empty when more has to be fed.

        Raises:
            zlib.error: The bytes are not gzip.
        """
        if self._packed is None:
            return b""
        piece = self._gzip.decompress(self._packed, _LARGEST_PIECE)
        # Even without a tail, a full piece may leave some inside.
        self._packed = self._gzip.unconsumed_tail if len(piece) == _LARGEST_PIECE else None
        return piece
