"""The layout of a run's prompts, for providers that cache their beginning."""

from dataclasses import replace
from itertools import takewhile

from ..message import repair_messages
from ..model import ModelRequest, PromptSegment, segments_after_repair
from ..prompt import prompt_fingerprint
from ._run import LoopRun

_TOOLS = PromptSegment(id="tools", role="tools", cacheable=True)


def lay_out(run: LoopRun, request: ModelRequest) -> None:
    """Lay a request out in system prompt, tools and history, where the policy protects the prefix.

    One that has a layout already keeps it.
    """
    if not run.policy.cache.protect_prompt_prefix or request.segments:
        return
    messages = request.messages
    lead = sum(1 for _ in takewhile(lambda message: message.role == "system", messages))
    stable = (PromptSegment(id="system", role="system", cacheable=True, messages=lead), _TOOLS)
    if request.prompt_fingerprint is None and (lead or request.tools):
        # Without the history, which grows: the calls of all runs of an agent go to one place.
        prefix = replace(request, messages=messages[:lead], segments=stable)
        request.prompt_fingerprint = prompt_fingerprint(prefix)
    history = len(messages) - lead
    request.segments = (
        *stable,
        PromptSegment(id="history", role="history", cacheable=True, messages=history),
    )


def repair_request(
    run: LoopRun,
    request: ModelRequest,
    own: tuple[object, str | None],
) -> None:
    """Mend the messages that hooks have left, and lay the prompt out anew.

    Args:
        run: The run.
        request: The request.
        own: The segments and the fingerprint that the request had before the hooks.
    """
    before, segments = request.messages, request.segments
    request.messages = repair_messages(before).messages
    if not segments:
        return
    if segments is own[0] and run.policy.cache.protect_prompt_prefix:
        request.segments = ()
        if request.prompt_fingerprint == own[1]:
            request.prompt_fingerprint = None
        lay_out(run, request)
    elif len(before) != len(request.messages) or any(
        old is not new for old, new in zip(before, request.messages, strict=True)
    ):
        request.segments = segments_after_repair(segments, before, request.messages)
