"""What every recording becomes: ``python -m tests.harness.providers.outcomes`` prints the table."""

import sys
from collections import Counter
from pathlib import Path
from typing import NamedTuple

import anyio

from tests.harness.providers.recorded import (
    MODELS,
    Failure,
    cases,
    described,
    document_of,
    is_streamed,
    outcome,
    replies,
)
from tests.harness.providers.server import serve
from tests.support import shared_folder


class Row(NamedTuple):
    """One recording."""

    api: str
    case: str
    form: str
    outcome: str
    detail: str


async def row(shared: Path, api: str, case: str) -> Row:
    """Send a recording from a server on loopback, and tell what its adapter makes of it."""
    document = document_of(shared, api, case)
    streamed = is_streamed(document)
    async with (
        serve(replies(document["response"])[0]) as server,
        MODELS[api](document, server.url) as model,
    ):
        found = described(await outcome(model, streamed))
    form = "stream" if streamed else "document"
    if isinstance(found, Failure):
        again = "may be asked again" if found.retryable else "final"
        return Row(api, case, form, found.cls.__name__, f"{found.status or '-'}, {again}")
    kinds = Counter("tool_call" if "(" in block else block.split()[0] for block in found.blocks)
    blocks = ", ".join(f"{count} {kind}" for kind, count in kinds.items()) or "nothing"
    return Row(api, case, form, found.finish or "no reason", blocks)


async def table(shared: Path) -> list[Row]:
    """All recordings that any adapter reads."""
    return [await row(shared, api, case) for api in MODELS for case in sorted(cases(shared, api))]


def main() -> None:
    shared = shared_folder()
    if shared is None:
        sys.exit("no shared folder: set TINYAGENTS_SHARED, or put it beside the repository")
    rows = anyio.run(table, shared)
    print("| api | recording | form | outcome | what is in it |\n| --- | --- | --- | --- | --- |")
    for each in rows:
        print(f"| {' | '.join(each)} |")
    for api in MODELS:
        found = Counter(each.outcome for each in rows if each.api == api)
        told = ", ".join(f"{count} {name}" for name, count in found.most_common())
        print(f"\n{api}: {found.total()} recordings: {told}")


if __name__ == "__main__":
    main()
