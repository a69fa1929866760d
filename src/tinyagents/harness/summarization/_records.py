"""What a summary stands for: where it came from, and whether it still fits."""

import hashlib
from collections.abc import Sequence
from typing import Annotated, ClassVar, Final, TypeAlias

from pydantic import BaseModel, ConfigDict, Field

from ..memo import MessageCache
from ..message import Message, SystemMessage, UserMessage

_PREFIX: Final = "summary-"

SummaryMessage: TypeAlias = Annotated[SystemMessage | UserMessage, Field(discriminator="role")]


class CompressionProvenance(BaseModel):
    """Where a summary came from."""

    model_config: ClassVar[ConfigDict] = ConfigDict(frozen=True, extra="forbid", defer_build=True)

    source_ids: tuple[str, ...]
    """What was summarised, in order: see :func:`message_ref`. An earlier summary is one of them."""
    original_token_estimate: int
    summary_token_estimate: int
    reason: str
    """What made it shorter, such as the trigger that fired."""
    summarizer: str = ""
    model: str | None = None
    prompt_version: str | None = None
    """The instructions that the model was given; ``None`` where no model was asked."""


class SummaryRecord(BaseModel):
    """A summary and its provenance: what a summariser returns, and what is stored."""

    model_config: ClassVar[ConfigDict] = ConfigDict(frozen=True, extra="forbid", defer_build=True)

    summary: SummaryMessage
    """What takes the place of the messages; :func:`is_summary` knows it again."""
    provenance: CompressionProvenance
    source_hash: str
    """Of the messages that it stands for: see :meth:`fits`."""
    previous: str | None = None
    """The id of the earlier summary that is part of this one."""

    @property
    def id(self) -> str:
        """The id of the summary message."""
        return self.summary.id or ""

    def fits(self, messages: Sequence[Message]) -> bool:
        """Whether it was made of exactly these messages; of others it would tell what is not so."""
        return self.source_hash == source_hash(messages)


def record_of(
    messages: Sequence[Message], summary: SummaryMessage, provenance: CompressionProvenance
) -> SummaryRecord:
    """Return the record of a summary of ``messages``, whose message gets its id if it has none yet."""
    earlier = [message.id for message in messages if is_summary(message)]
    return SummaryRecord(
        summary=summary if is_summary(summary) else named_summary(messages, summary),
        provenance=provenance,
        source_hash=source_hash(messages),
        previous=earlier[-1] if earlier else None,
    )


def named_summary(messages: Sequence[Message], summary: SummaryMessage) -> SummaryMessage:
    """Return a summary of ``messages`` with the id that :func:`is_summary` knows it by."""
    words = hashlib.sha256(f"{source_hash(messages)}\n{summary.text}".encode()).hexdigest()
    return summary.model_copy(update={"id": f"{_PREFIX}{words[:16]}"})


def is_summary(message: Message) -> bool:
    """Whether a message is a summary that a summariser of ours has made."""
    return message.id is not None and message.id.startswith(_PREFIX)


def message_ref(message: Message) -> str:
    """Return what a message is called in records: its id, or the beginning of its hash."""
    return message.id or f"sha256-{message_digest(message)[:16]}"


def message_digest(message: Message) -> str:
    """Return the SHA-256 of a message's JSON form, which loading and storing leave as it is."""
    return _DIGESTS.of(message, None)


def source_hash(messages: Sequence[Message]) -> str:
    """Return one hash for several messages in their order."""
    digests = "".join(message_digest(message) for message in messages)
    return hashlib.sha256(digests.encode()).hexdigest()


def _digest(message: Message, _: None) -> str:
    return hashlib.sha256(message.model_dump_json().encode()).hexdigest()


_DIGESTS: Final[MessageCache[None, str]] = MessageCache(_digest)
