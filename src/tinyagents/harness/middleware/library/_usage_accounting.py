"""Sums of what models have used, over runs and agents."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from threading import Lock
from typing import Any

from ...context import RunContext
from ...model import ModelResponse
from ...usage import UsageTotals
from .._base import Middleware


@dataclass(frozen=True, slots=True, kw_only=True)
class UsageAccount:
    """What was counted up to one moment; it does not change any more."""

    total: UsageTotals
    """Of all answers, those from a cache included."""
    replayed: UsageTotals
    """The part of it that came from a cache, and so cost nothing."""
    models: Mapping[str, UsageTotals]
    """The total by model: ``provider:model``, or its registered name where these are not known.

    Answers that a hook gave in a model's place are under the empty name.
    """


class UsageAccountingMiddleware(Middleware[Any]):
    """Adds up the usage of all answers, over the runs of every agent that it is given to.

    Other than ``run.usage`` it counts what a cache has answered as well, and what runs inside tools
    use only where their agents have it too. Answers alone are counted: not failed attempts, nor
    answers that a hook had asked for again.

    Hooks: ``after_model``. It changes nothing and emits nothing. It may be shared between threads.
    """

    def __init__(self) -> None:
        self._lock = Lock()
        self._begin()

    def _begin(self) -> None:
        self._total = UsageTotals()
        self._replayed = UsageTotals()
        self._models: dict[str, UsageTotals] = {}

    def account(self) -> UsageAccount:
        """Return the sums so far."""
        with self._lock:
            return self._account()

    def reset(self) -> UsageAccount:
        """Return the sums so far, and begin at 0 again; nothing is lost or counted twice."""
        with self._lock:
            account = self._account()
            self._begin()
            return account

    def _account(self) -> UsageAccount:
        return UsageAccount(
            total=replace(self._total),
            replayed=replace(self._replayed),
            models={name: replace(totals) for name, totals in sorted(self._models.items())},
        )

    async def after_model(self, ctx: RunContext[Any], response: ModelResponse) -> None:
        """Count an answer."""
        usage, name = response.usage, _model_name(response)
        with self._lock:
            self._total.add(usage)
            self._models.setdefault(name, UsageTotals()).add(usage)
            if response.served_from_cache:
                self._replayed.add(usage)


def _model_name(response: ModelResponse) -> str:
    resolved = response.resolved_model
    if resolved is None:
        return ""
    if resolved.provider and resolved.model:
        return f"{resolved.provider}:{resolved.model}"
    return resolved.name
