"""What a run asks of the model next."""

import inspect
from typing import Any

from ..errors import InvalidRequestError
from ..message import Message, SystemMessage
from ..model import ModelBinding, ModelRequest
from ..structured import OutputSpec
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
    """Resolve the request's model, and refuse what that model is known not to do."""
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
    if request.tools and binding.model.profile.tool_calling is False:
        raise InvalidRequestError(
            f"the model `{binding.resolved.name}` cannot call tools, and "
            f"{len(request.tools)} are offered: choose another model or pass tools=()"
        )
    return binding


def plan_output(
    run: LoopRun, output: OutputSpec[Any], request: ModelRequest, binding: ModelBinding
) -> None:
    """Add the output type to the request in the way that suits the model."""
    run.snapshot.structured_by_tool = False
    if request.response_format is not None or run.snapshot.tools_off:
        return
    profile = binding.model.profile
    if output.strategy_for(profile) == "native":
        request.response_format = output.response_format()
        return
    run.snapshot.structured_by_tool = True
    if not request.tools and profile.forced_tool_choice is not False:
        request.tool_choice = "required"
    request.tools = (*request.tools, output.tool_schema())
