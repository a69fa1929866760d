"""Calls to be run together, bounded or left in the background."""

import anyio
import anyio.lowlevel


class Signal(BaseException):
    """What steers a run and is no failure."""


class Waiter:
    """Calls that wait until they are cancelled, and what became of them."""

    def __init__(self) -> None:
        self.started = 0
        self.cleaned = 0

    async def run(self) -> None:
        await self()

    async def __call__(self) -> str:
        self.started += 1
        try:
            await anyio.sleep_forever()
        finally:
            with anyio.CancelScope(shield=True):
                await anyio.lowlevel.checkpoint()
            self.cleaned += 1
        return "never"


async def give(value: object) -> object:
    await anyio.lowlevel.checkpoint()
    return value


async def throw(error: BaseException) -> object:
    await anyio.lowlevel.checkpoint()
    raise error
