"""Models by name, and which of them answers a request."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from ..errors import DuplicateNameError, ModelNotFoundError
from ._chat_model import ChatModel
from ._fit import unknown_model
from ._profile import CapabilitySet
from ._request import ModelHint, ModelRequest
from ._response import ModelSource, ResolvedModel


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelBinding:
    """A model that was chosen, and how."""

    model: ChatModel
    resolved: ResolvedModel
    skipped: tuple[str, ...] = ()
    """Names that were asked for and could not serve, each with the reason."""
    notices: tuple[str, ...] = ()
    """What had to be done for the model to serve, a sentence each."""


class ModelRegistry:
    """Models by name. The first one is the default. Immutable.

    A request is resolved through, in this order: its own ``model``, the previous call's model when
    reuse is asked for, its hints by priority, the agent's default, the registry's default. A
    candidate must exist, meet the demanded capabilities and not be retired.

    Args:
        models: The models by name.
        default: The name of another default than the first one.

    Raises:
        ModelNotFoundError: ``default`` names none of the models.
    """

    def __init__(
        self, models: Mapping[str, ChatModel] | None = None, *, default: str | None = None
    ) -> None:
        self._models = dict(models or {})
        self._default = next(iter(self._models), None)
        self._plain: ModelBinding | None = None
        """The answer to a request that asks for nothing, which most are."""
        if default is not None:
            self.get(default)
            self._default = default

    def with_model(self, name: str, model: ChatModel) -> "ModelRegistry":
        """Return a registry with one more model.

        Raises:
            DuplicateNameError: The name is taken.
        """
        if name in self._models:
            raise DuplicateNameError(f"a model named `{name}` is registered already", name=name)
        return ModelRegistry({**self._models, name: model}, default=self._default)

    def with_default(self, name: str) -> "ModelRegistry":
        """Return a registry with another default.

        Raises:
            ModelNotFoundError: There is no model of that name.
        """
        return ModelRegistry(self._models, default=name)

    def get(self, name: str) -> ChatModel:
        """Return the model of that name.

        Raises:
            ModelNotFoundError: There is none; the message lists those that there are.
        """
        try:
            return self._models[name]
        except KeyError:
            raise ModelNotFoundError(
                f"no model is registered as `{name}`; there are {self._listed()}", name=name
            ) from None

    @property
    def default(self) -> str | None:
        """The name of the default model; ``None`` while there is no model."""
        return self._default

    @property
    def names(self) -> tuple[str, ...]:
        """The registered names, sorted."""
        return tuple(sorted(self._models))

    def __getitem__(self, name: str) -> ChatModel:
        return self.get(name)

    def __contains__(self, name: object) -> bool:
        return name in self._models

    def __iter__(self) -> Iterator[str]:
        return iter(self.names)

    def __len__(self) -> int:
        return len(self._models)

    def resolve(
        self,
        request: ModelRequest,
        *,
        previous: str | None = None,
        agent_default: str | None = None,
        allow_retired: bool = False,
    ) -> ModelBinding:
        """Choose the model for a request.

        Args:
            request: What is to be answered.
            previous: The name of the model that answered the run's previous call.
            agent_default: The agent's own choice, above the registry's.
            allow_retired: Let retired models serve too.

        Raises:
            ModelNotFoundError: No candidate can serve; the message says why not.
        """
        demands = request.required_capabilities
        if not request.reuse_previous_model:
            previous = None
        asks_nothing = (
            request.model is None
            and previous is None
            and agent_default is None
            and demands is None
            and not request.model_hints
            and not allow_retired
        )
        if asks_nothing and self._plain is not None:
            return self._plain
        candidates = self._candidates(request, previous, agent_default)
        binding = self._choose(candidates, demands, allow_retired)
        if asks_nothing:
            self._plain = binding
        return binding

    def bind_fallback(
        self, name: str, demands: CapabilitySet | None = None, *, requested: str | None = None
    ) -> "ModelBinding | str":
        """Return the named model as a fallback, or in words why it cannot serve."""
        refusal = self._refusal(name, demands, allow_retired=False)
        return refusal or self._bind(name, "fallback", requested, ())

    def _candidates(
        self, request: ModelRequest, previous: str | None, agent_default: str | None
    ) -> Sequence[tuple[str, ModelSource]]:
        hints: list[ModelHint] = sorted(request.model_hints, key=lambda hint: -hint.priority)
        named: list[tuple[str | None, ModelSource]] = [
            (request.model, "request_override"),
            (previous, "state_reuse"),
            *((hint.model, "hint") for hint in hints),
            (agent_default, "agent_default"),
            (self._default, "registry_default"),
        ]
        return [(name, source) for name, source in named if name is not None]

    def _choose(
        self,
        candidates: Sequence[tuple[str, ModelSource]],
        demands: CapabilitySet | None,
        allow_retired: bool,
    ) -> ModelBinding:
        skipped: list[str] = []
        requested = candidates[0][0] if candidates else None
        for name, source in candidates:
            refusal = self._refusal(name, demands, allow_retired=allow_retired)
            if refusal is None:
                asked = requested if source == "request_override" or skipped else None
                return self._bind(name, source, asked, tuple(skipped))
            skipped.append(refusal)
        why = "; ".join(dict.fromkeys(skipped)) or "no model is registered"
        raise ModelNotFoundError(f"no model can serve this request: {why}", name=requested)

    def _refusal(
        self, name: str, demands: CapabilitySet | None, *, allow_retired: bool
    ) -> str | None:
        model = self._models.get(name)
        if model is None:
            return f"`{name}` is not registered (there are {self._listed()})"
        if model.profile.status == "retired" and not allow_retired:
            return f"`{name}` is retired"
        if demands is not None and (missing := model.profile.missing(demands)):
            return f"`{name}` lacks {', '.join(missing)}{unknown_model(model.profile)}"
        return None

    def _bind(
        self, name: str, source: ModelSource, requested: str | None, skipped: tuple[str, ...]
    ) -> ModelBinding:
        model = self._models[name]
        profile = model.profile
        return ModelBinding(
            model=model,
            resolved=ResolvedModel(
                name=name,
                provider=profile.provider,
                model=profile.model,
                requested=requested,
                source=source,
            ),
            skipped=skipped,
        )

    def _listed(self) -> str:
        return ", ".join(f"`{name}`" for name in self.names) or "none"
