"""What a run asks of the model next."""

import inspect
from dataclasses import replace

from ..message import Message, SystemMessage
from ..model import FittedRequest, ModelBinding, ModelProfile, ModelRequest, fit_request
from ._output_plan import plan_output, take_back_output
from ._run import LoopRun, SystemFunction


def build_request(run: LoopRun) -> ModelRequest:
    """Make the request of the next call from the transcript and the agent's settings."""
    snapshot, system, settings = run.snapshot, run.spec.system, run.settings
    messages, raised = snapshot.messages, snapshot.repeats.max_tokens
    if raised is not None:
        settings = settings.model_copy(update={"max_tokens": raised})
    return ModelRequest(
        [system, *messages] if isinstance(system, SystemMessage) else messages.copy(),
        () if snapshot.tools_off else run.tool_schemas,
        settings=settings,
        model=run.override,
    )


async def system_messages(run: LoopRun, system: SystemFunction) -> list[Message]:
    """Return the instructions that a function gives for this call."""
    text = system(run.ctx)
    if inspect.isawaitable(text):
        text = await text
    return [SystemMessage(content=text)] if text else []


def choose_model(run: LoopRun, request: ModelRequest) -> ModelBinding:
    """Resolve the request's model."""
    snapshot = run.snapshot
    previous = snapshot.resolved_model.name if snapshot.resolved_model is not None else None
    binding = run.spec.models.resolve(request, previous=previous)
    if binding.skipped:
        run.ctx.emit(
            "model.override_skipped",
            requested=binding.resolved.requested or "",
            resolved=binding.resolved.name,
            reason="; ".join(binding.skipped),
        )
    if snapshot.repeats.max_tokens is not None:
        _keep_raised_limit_within(request, binding.model.profile)
    return suited(run, request, binding)


def suited_copy(
    run: LoopRun, request: ModelRequest, binding: ModelBinding
) -> tuple[ModelRequest, ModelBinding]:
    """Return what :func:`suited` makes of a request that stays as it is, and of the binding."""
    if run.output is not None:
        request = replace(request)
    return request, suited(run, request, binding)


def suited(run: LoopRun, request: ModelRequest, binding: ModelBinding) -> ModelBinding:
    """Ask for the typed answer, if there is to be one, in the way that suits the model.

    Returns:
        The binding, with the tools told in words where the model needs that.
    """
    output = run.output
    if output is None:
        return _with_tools_in_words(run, request, binding)
    take_back_output(output, request)
    binding = _with_tools_in_words(run, request, binding)
    plan_output(run, output, request, binding)
    return _with_tools_in_words(run, request, binding)


def _with_tools_in_words(
    run: LoopRun, request: ModelRequest, binding: ModelBinding
) -> ModelBinding:
    """Return the binding, with a model that cannot call tools made into one that is told of them.

    That is done where tools are offered and the policy is to degrade.
    """
    profile = binding.model.profile
    if not request.tools or profile.tool_calling is not False:
        return binding
    if run.policy.unsupported != "degrade":
        return binding
    from ..tool_calling import PromptGuidedModel

    told = (
        f"`{profile.model or binding.resolved.name}` cannot call tools: its prompt describes them"
    )
    return replace(binding, model=PromptGuidedModel(binding.model), notices=(told,))


def fit_to_model(run: LoopRun, request: ModelRequest, binding: ModelBinding) -> FittedRequest:
    """Return the request in a form that the model takes, and what was done for that.

    Raises:
        CapabilityError: The model cannot take part of it, and the policy is to fail.
    """
    fitted = fit_request(request, binding.model.profile, run.policy.unsupported)
    if not binding.notices:
        return fitted
    return FittedRequest(fitted.request, (*binding.notices, *fitted.notices))


def _keep_raised_limit_within(request: ModelRequest, profile: ModelProfile) -> None:
    """Ask for no more tokens than the model has, where the run itself has raised the limit."""
    most, asked = profile.max_output_tokens, request.settings.max_tokens
    if most is not None and asked is not None and asked > most:
        request.settings = request.settings.model_copy(update={"max_tokens": most})
