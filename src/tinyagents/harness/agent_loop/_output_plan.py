"""How a model is asked for the run's typed answer: chosen for each model that is asked."""

from typing import Any

from ..model import ModelBinding, ModelProfile, ModelRequest, instructed
from ..prompt import resized
from ..structured import ANY_OBJECT, OutputSpec
from ._run import LoopRun


def plan_output(
    run: LoopRun, output: OutputSpec[Any], request: ModelRequest, binding: ModelBinding
) -> None:
    """Add the output type to the request in the way that suits the model.

    A response format that a hook has set stands: its author asks for the answer natively.
    """
    run.snapshot.structured_by_tool = False
    if request.response_format is not None:
        return
    profile = binding.model.profile
    match output.strategy_for(profile):
        case "native":
            request.response_format = output.format
        case "prompted":
            told = instructed(request, output.instruction)
            request.messages, request.segments = told.messages, told.segments
            if profile.json_mode:
                request.response_format = ANY_OBJECT
        case "tool":
            run.snapshot.structured_by_tool = True
            if not request.tools and _may_force(request, profile):
                request.tool_choice = "required"
            request.tools = (*request.tools, *output.tool_schemas)


def take_back_output(output: OutputSpec[Any], request: ModelRequest) -> None:
    """Undo what :func:`plan_output` has done for another model."""
    if request.response_format is output.format or request.response_format is ANY_OBJECT:
        request.response_format = None
    if any(tool.name in output.tool_names for tool in request.tools):
        request.tools = tuple(t for t in request.tools if t.name not in output.tool_names)
        if not request.tools and request.tool_choice == "required":
            request.tool_choice = "auto"
    told = output.instruction_if_told
    if told is not None:
        left = [message for message in request.messages if message is not told]
        if request.segments:
            request.segments = resized(request.segments, request.messages, left)
        request.messages = left


def _may_force(request: ModelRequest, profile: ModelProfile) -> bool:
    # Some providers refuse to force a call while the model reasons. Unforced, an answer in words is
    # asked for again.
    reasoning = request.settings.reasoning
    reasons = reasoning is not None and reasoning.effort != "none"
    return profile.forced_tool_choice is not False and not reasons
