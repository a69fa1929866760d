"""What tinyagents costs on top of a bare loop: medians over interleaved rounds, and their ratio.

    python benchmarks/run.py [--rounds 3] [--scenarios turn,long] [--json]

Measures the package as installed, each measurement in a process of its own. The ``import`` scenario
compares with importing pydantic instead. Machines differ: compare ratios, and only those above 1.3.
"""

import argparse
import json
import subprocess
import sys
from collections import defaultdict
from pathlib import Path
from statistics import median

ROOT = Path(__file__).resolve().parents[1]
SIDES = ("floor", "tinyagents")
SCENARIOS = ("import", "turn", "long", "parallel", "stream", "concurrent", "long_conversation")

Results = dict[str, dict[str, dict[str, float]]]
"""Scenario, metric, side: a median."""


def measure(side: str, scenario: str) -> dict[str, float]:
    """The metrics of one measurement, in a fresh process."""
    command = [sys.executable, "-m", "benchmarks.measure", side, scenario]
    done = subprocess.run(command, cwd=ROOT, stdout=subprocess.PIPE, text=True, check=True)
    metrics: dict[str, float] = json.loads(done.stdout.splitlines()[-1])
    return metrics


def measure_all(scenarios: list[str], rounds: int) -> Results:
    """Measure floor and tinyagents in turns, so that a busy minute of the machine meets both."""
    values: dict[tuple[str, str, str], list[float]] = defaultdict(list)
    for number in range(1, rounds + 1):
        for scenario in scenarios:
            for side in SIDES:
                print(f"round {number}/{rounds}: {scenario} {side}", file=sys.stderr)
                for metric, value in measure(side, scenario).items():
                    values[scenario, metric, side].append(value)
    results: Results = defaultdict(lambda: defaultdict(dict))
    for (scenario, metric, side), measured in values.items():
        results[scenario][metric][side] = median(measured)
    return results


def table(results: Results) -> str:
    """The results in Markdown."""
    lines = [
        "| scenario | metric | floor | tinyagents | ratio |",
        "| --- | --- | --: | --: | --: |",
    ]
    for scenario, metrics in results.items():
        for metric, sides in metrics.items():
            floor, ours = sides["floor"], sides["tinyagents"]
            ratio = f"{ours / floor:.2f}" if floor else "-"
            lines.append(f"| {scenario} | {metric} | {floor:,.1f} | {ours:,.1f} | {ratio} |")
    return "\n".join(lines)


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--scenarios", default=",".join(SCENARIOS), help="separated by commas")
    parser.add_argument("--json", action="store_true", help="print JSON instead of a table")
    given = parser.parse_args()
    scenarios: list[str] = given.scenarios.split(",")
    if unknown := set(scenarios) - set(SCENARIOS):
        parser.error(f"unknown scenarios: {', '.join(sorted(unknown))}")
    results = measure_all(scenarios, given.rounds)
    print(json.dumps(results, indent=2) if given.json else table(results))


if __name__ == "__main__":
    main()
