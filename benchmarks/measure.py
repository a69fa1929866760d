"""One measurement in a process of its own: ``python -m benchmarks.measure SIDE SCENARIO``.

Prints the metrics as one line of JSON. ``run.py`` calls this in turns and compares.
"""

import argparse
import asyncio
import importlib
import json
import sys
import time
from collections.abc import Awaitable, Callable
from itertools import pairwise
from pathlib import Path
from statistics import fmean, median

from benchmarks.work import Run, Work, checked

Build = Callable[[Work], Run]
Metrics = dict[str, float]

MODULES = {"floor": "benchmarks.floor", "tinyagents": "benchmarks.agent"}
IMPORTS = {
    "floor": "from pydantic import BaseModel\nclass City(BaseModel):\n    name: str\n",
    "tinyagents": "from tinyagents import AgentHarness, tool",
}
"""What a program begins with. Both packages load their parts on use, so both sides use one."""
DELTAS = 2_000
RUNS_AT_ONCE = 1_000
TALK_TURNS = 400
TALK_WINDOW = 16_000
"""Tokens; each turn of the long conversation has some 600."""


async def timed(build: Build, work: Work, *, seconds: float, at_least: int, warm_up: int) -> float:
    """The median seconds of one run, over at least so many seconds and runs."""
    run = build(work)
    for _ in range(warm_up):
        await checked(run, work)
    times: list[float] = []
    stop = time.perf_counter() + seconds
    while len(times) < at_least or time.perf_counter() < stop:
        start = time.perf_counter()
        await checked(run, work)
        times.append(time.perf_counter() - start)
    return median(times)


async def turn(build: Build) -> Metrics:
    """Model, one tool, model."""
    run = await timed(build, Work(turns=1), seconds=1, at_least=100, warm_up=20)
    return {"us_per_run": run * 1e6}


async def long(build: Build) -> Metrics:
    """Runs of 50 and of 200 turns; growth is 1 where a turn costs the same in both."""
    per_turn = {
        turns: await timed(build, Work(turns=turns), seconds=2, at_least=3, warm_up=1) / turns
        for turns in (50, 200)
    }
    return {
        "us_per_turn_50": per_turn[50] * 1e6,
        "us_per_turn_200": per_turn[200] * 1e6,
        "growth_200_over_50": per_turn[200] / per_turn[50],
    }


async def parallel(build: Build) -> Metrics:
    """50 tool calls in one turn."""
    run = await timed(build, Work(turns=1, width=50), seconds=1, at_least=20, warm_up=3)
    return {"ms_per_run": run * 1e3}


async def stream(build: Build) -> Metrics:
    """An answer in 2,000 deltas."""
    run = await timed(build, Work(deltas=DELTAS), seconds=1, at_least=3, warm_up=1)
    return {"ns_per_delta": run / DELTAS * 1e9}


async def concurrent(build: Build) -> Metrics:
    """1,000 runs of one turn at once, on a model that takes 10 ms: 20 ms is the least."""
    work = Work(turns=1, delay=0.01)
    run = build(work)
    await checked(run, work, times=10)
    reset_peak_memory()
    memory, start = memory_mb("VmRSS"), time.perf_counter()
    await checked(run, work, times=RUNS_AT_ONCE)
    wall = time.perf_counter() - start
    return {"wall_ms": wall * 1e3, "peak_growth_mb": memory_mb("VmHWM") - memory}


async def long_conversation(build: Build) -> Metrics:
    """400 turns with results of 2,000 characters, in a window of 16,000 tokens; the floor keeps all.

    The times are those between two calls of the model, means of the first and the last 50 turns;
    growth is 1 where a late turn costs what an early one does.
    """
    firsts: list[float] = []
    lasts: list[float] = []
    reset_peak_memory()
    memory = memory_mb("VmRSS")
    for _ in range(5):
        work = Work(turns=TALK_TURNS, padding=2_000, window=TALK_WINDOW)
        await checked(build(work), work)
        turns = [later - sooner for sooner, later in pairwise(work.asked_at)]
        firsts.append(fmean(turns[:50]))
        lasts.append(fmean(turns[-50:]))
    first, last = median(firsts), median(lasts)
    return {
        "us_per_turn_first_50": first * 1e6,
        "us_per_turn_last_50": last * 1e6,
        "growth_last_over_first": last / first,
        "peak_growth_mb": memory_mb("VmHWM") - memory,
    }


def first_import(side: str) -> Metrics:
    """Importing what an agent needs, then building one and running it once.

    The other side of the comparison is pydantic with one model, and for the first run the floor on
    top of it.
    """
    modules, start = len(sys.modules), time.perf_counter()
    exec(IMPORTS[side], {"__name__": "program"})
    imported = time.perf_counter()
    metrics = {
        "import_ms": (imported - start) * 1e3,
        "import_modules": float(len(sys.modules) - modules),
        "import_rss_mb": memory_mb("VmRSS"),
    }
    work = Work(turns=1)
    build: Build = importlib.import_module(MODULES[side]).build
    asyncio.run(_once(build, work))
    return metrics | {
        "until_first_run_ms": (time.perf_counter() - start) * 1e3,
        "first_run_modules": float(len(sys.modules) - modules),
        "first_run_rss_mb": memory_mb("VmRSS"),
    }


async def _once(build: Build, work: Work) -> None:
    await checked(build(work), work)


def memory_mb(field: str) -> float:
    """This process's memory now (``VmRSS``) or at its peak (``VmHWM``); 0 where Linux is not."""
    status = Path("/proc/self/status")
    if not status.exists():
        return 0.0
    line = next(line for line in status.read_text().splitlines() if line.startswith(field))
    return int(line.split()[1]) / 1024


def reset_peak_memory() -> None:
    """Let the peak start over, where Linux is."""
    clear = Path("/proc/self/clear_refs")
    if clear.exists():
        clear.write_text("5")


SCENARIOS: dict[str, Callable[[Build], Awaitable[Metrics]]] = {
    "turn": turn,
    "long": long,
    "parallel": parallel,
    "stream": stream,
    "concurrent": concurrent,
    "long_conversation": long_conversation,
}


async def _measure(side: str, scenario: str) -> Metrics:
    build: Build = importlib.import_module(MODULES[side]).build
    return await SCENARIOS[scenario](build)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("side", choices=MODULES)
    parser.add_argument("scenario", choices=["import", *SCENARIOS])
    given = parser.parse_args()
    if given.scenario == "import":
        metrics = first_import(given.side)
    else:
        metrics = asyncio.run(_measure(given.side, given.scenario))
    print(json.dumps(metrics))


if __name__ == "__main__":
    main()
