"""What becomes of the pieces of a streamed answer: filtered, observed, shown."""

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from ..errors import ModelError
from ..message import AssistantMessage, Block
from ..middleware import DeltaFilter, ModelDelta
from ..model import MessageDelta, PieceKind, ToolCallDelta
from ..structured import OutputSpec, PartialAnswer, PartialReader
from ..text import encode_json
from ._run import LoopRun

if TYPE_CHECKING:
    from ._feed import Feed


class ShownPieces:
    """The pieces of one attempt at an answer, on their way to whoever sees them."""

    __slots__ = ("_call_id", "_feed", "_filters", "_partial", "_run", "kinds")

    def __init__(self, run: LoopRun, call_id: str, output: OutputSpec[Any] | None = None) -> None:
        self._run = run
        self._call_id = call_id
        feed = run.feed
        self._feed: Feed | None = feed if feed is not None and feed.shows_messages else None
        self._partial: PartialReader | None = None
        if output is not None:
            self._partial = PartialReader(output, by_tool=run.snapshot.structured_by_tool)
        try:
            made = [make(run.ctx) for _, make in run.spec.middleware.filter_deltas]
        except ModelError as error:
            self._note(error)
            raise
        self._filters: list[DeltaFilter] = [each for each in made if each is not None]
        self.kinds: set[PieceKind] = set()
        """The kinds of pieces that were let pass, where there are filters."""

    @property
    def filtered(self) -> bool:
        """Whether something may hold pieces back."""
        return bool(self._filters)

    async def push(self, item: ModelDelta) -> bool:
        """Show a piece, and tell whether whoever reads is far behind."""
        try:
            if not self._filters:
                return await self._show(item)
            return await self._show_all(self._passed([item], 0))
        except ModelError as error:
            self._note(error)
            raise

    async def end(self) -> bool:
        """Show what is still held back, and tell whether whoever reads is far behind."""
        behind = False
        try:
            for place, each in enumerate(self._filters, 1):
                behind = await self._show_all(self._passed(each.flush(), place))
        except ModelError as error:
            self._note(error)
            raise
        if self._partial is not None:
            behind = self._show_partial(self._partial.end()) or behind
        return behind

    def _show_partial(self, answer: PartialAnswer | None) -> bool:
        feed = self._run.feed
        return (
            answer is not None and feed is not None and feed.partial_output(self._call_id, answer)
        )

    def _note(self, error: ModelError) -> None:
        """Put down that a hook has raised it: it is no failure of the model, to be retried."""
        if self._run.open_call is not None:
            self._run.open_call.hook_error = error

    def _passed(self, items: Iterable[ModelDelta], first: int) -> Iterable[ModelDelta]:
        for each in self._filters[first:]:
            items = [out for item in items for out in each.push(item)]
        return items

    async def _show_all(self, items: Iterable[ModelDelta]) -> bool:
        behind = False
        for item in items:
            self.kinds.update(_kinds(item))
            behind = await self._show(item)
        return behind

    async def _show(self, item: ModelDelta) -> bool:
        run = self._run
        for _, hook in run.spec.middleware.on_model_delta:
            await hook(run.ctx, item)
        if run.ctx.events.listened:
            _tell(run, self._call_id, item)
        behind = self._feed is not None and self._feed.delta(self._call_id, item)
        if self._partial is not None:
            behind = self._show_partial(self._partial.take(item)) or behind
        return behind


def show_rest(
    run: LoopRun, call_id: str, message: AssistantMessage, shown: Iterable[PieceKind]
) -> None:
    """Show what a complete answer has of each kind of which nothing was shown while it came."""
    feed = run.feed if run.feed is not None and run.feed.shows_messages else None
    if feed is None:
        return
    for block in message.content:
        piece = piece_of(block)
        if piece is None or not _kinds(piece).isdisjoint(shown):
            continue
        if run.ctx.events.listened:
            _tell(run, call_id, piece)
        feed.delta(call_id, piece)


def piece_of(block: Block) -> ModelDelta | None:
    """Return a block in one piece, as it would be streamed; ``None`` for one that never is."""
    match block.type:
        case "text":
            return MessageDelta(text=block.text)
        case "reasoning":
            return MessageDelta(reasoning=block.text)
        case "refusal":
            return MessageDelta(refusal=block.text)
        case "tool_call":
            raw = block.invalid.raw if block.invalid else encode_json(block.arguments).decode()
            return ToolCallDelta(call_id=block.id, name=block.name, arguments=raw)
        case _:
            return None


def _kinds(item: ModelDelta) -> set[PieceKind]:
    if isinstance(item, ToolCallDelta):
        return {"tool_call"}
    given: tuple[tuple[PieceKind, str], ...] = (
        ("text", item.text),
        ("reasoning", item.reasoning),
        ("refusal", item.refusal),
    )
    return {kind for kind, text in given if text}


def _tell(run: LoopRun, call_id: str, item: ModelDelta) -> None:
    payload = _delta_payload(item, capture=run.policy.capture.model_io)
    run.ctx.events.emit_transient("model.delta", run.ctx.origin, {"call_id": call_id, **payload})


def _delta_payload(item: ModelDelta, *, capture: bool) -> dict[str, Any]:
    """Return what an event says of a piece: how long it is, and what it is where that is captured."""
    if isinstance(item, MessageDelta):
        size = len(item.text) + len(item.reasoning) + len(item.refusal)
        shown: dict[str, Any] = {"text": item.text or None, "reasoning": item.reasoning or None}
    else:
        size = len(item.arguments)
        told = {"call_id": item.call_id, "name": item.name, "content": item.arguments}
        shown = {"tool_call": told}
    return {"characters": size, **shown} if capture else {"characters": size}
