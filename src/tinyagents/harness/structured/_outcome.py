"""Whether an answer is one: a model may decline, and a limit may cut it."""

from typing import Any

from ..errors import OutputRefusedError, OutputTruncatedError
from ..message import AssistantMessage
from ..model import FinishReason
from ..text import dump_json
from ._output import OutputSpec


def raise_for_outcome(
    spec: OutputSpec[Any], message: AssistantMessage, reason: FinishReason | None
) -> None:
    """Raise where the answer is none, whatever its text looks like.

    Raises:
        OutputRefusedError: The model declined, or its provider withheld the answer.
        OutputTruncatedError: It was cut by the token limit.
    """
    refusal = message.refusal
    if refusal is not None or reason == "refusal":
        raise OutputRefusedError(
            f"the model refused to answer: {refusal or message.text}",
            schema_name=spec.name,
            text=refusal or message.text,
            answer=message,
        )
    if reason == "content_filter":
        raise OutputRefusedError(
            "the provider's content filter has withheld the answer or a part of it",
            schema_name=spec.name,
            text=message.text,
            answer=message,
        )
    if reason == "length":
        raise truncated(spec, message)


def truncated(spec: OutputSpec[Any], message: AssistantMessage) -> OutputTruncatedError:
    """Return the error of an answer that was cut, with what there is of it."""
    calls = [call for call in message.tool_calls if call.name in spec.tool_names]
    arguments = "".join(
        call.invalid.raw if call.invalid is not None else dump_json(call.arguments)
        for call in calls[-1:]
    )
    return OutputTruncatedError(
        f"the answer was cut by the token limit before `{spec.name}` was complete; "
        "raise `max_tokens`",
        schema_name=spec.name,
        text=arguments or message.text,
        answer=message,
    )


def is_whole(reason: FinishReason | None) -> bool:
    """Whether the provider has said that an answer came to its end by itself."""
    return reason in ("stop", "tool_calls")
