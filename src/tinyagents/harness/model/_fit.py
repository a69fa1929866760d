"""Whether a model can take a request, and how to make one that it can take. Nothing is sent."""

from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field, replace
from typing import Any, Literal

from ..errors import CapabilityError
from ..message import AudioBlock, Block, FileBlock, ImageBlock, Message, SystemMessage, TextBlock
from ..text import JsonObject, dump_json
from ._profile import ModelProfile
from ._request import JsonObjectFormat, JsonSchemaFormat, ModelRequest, NamedTool, ReasoningConfig
from ._segments import segments_after_insertion

_PLACES = {
    "system": "a system message",
    "user": "a user message",
    "assistant": "an assistant message",
    "tool": "a tool result",
}


@dataclass(frozen=True, slots=True)
class FittedRequest:
    """A request that its model can take."""

    request: ModelRequest
    notices: tuple[str, ...] = ()
    """What was changed or left out, a sentence each."""


def fit_request(
    request: ModelRequest, profile: ModelProfile, unsupported: Literal["fail", "degrade"] = "fail"
) -> FittedRequest:
    """Return the request in a form that the model is not known to refuse.

    What is not known of a model is let through. A temperature for a model that takes none is always
    left out. For the rest ``unsupported`` decides:

    - Images, audio and files become a short text that says what was left out.
    - A forced tool choice becomes an instruction.
    - A JSON form of the answer becomes an instruction, which nobody holds the model to: the caller
      has to check the answer.
    - Reasoning settings are left out; ``max_tokens`` is lowered to what the model has.
    - Tools have no other form here. :class:`~tinyagents.harness.tool_calling.PromptGuidedModel`
      serves them.

    Args:
        request: The request; it is not changed, nor are its messages.
        profile: What the model can do.
        unsupported: Raise, or degrade.

    Raises:
        CapabilityError: The model cannot take part of the request. Its message names the model, what
            it cannot take, and what helps.
    """
    fitting = _Fitting(request, profile, degrade=unsupported == "degrade")
    fitting.fit_media()
    fitting.fit_tools()
    fitting.fit_format()
    fitting.fit_settings()
    return FittedRequest(fitting.request, tuple(fitting.notices))


def told_format(request: ModelRequest) -> ModelRequest:
    """Return a request whose form of the answer is asked for in words; nobody holds the model to it."""
    match request.response_format:
        case JsonSchemaFormat(schema=schema):
            text = schema_instruction(schema)
        case JsonObjectFormat():
            text = "Answer with one JSON object alone, without any text around it."
        case _:
            return request
    return _told(replace(request, response_format=None), text)


def schema_instruction(schema: JsonObject) -> str:
    """Return the words that ask for an answer of this schema."""
    return (
        "Answer with JSON alone, without any text around it, that fits this JSON Schema:\n"
        f"{dump_json(schema)}"
    )


def instructed(request: ModelRequest, instruction: SystemMessage) -> ModelRequest:
    """Return a request with an instruction behind those at the beginning."""
    messages = request.messages
    lead = 0
    while lead < len(messages) and messages[lead].role == "system":
        lead += 1
    told: list[Message] = [*messages[:lead], instruction, *messages[lead:]]
    segments = segments_after_insertion(request.segments, lead)
    return replace(request, messages=told, segments=segments)


def told_media(block: Block) -> TextBlock:
    """Return a text in the place of an image, a sound or a file that cannot be sent."""
    match block:
        case ImageBlock():
            kind = "An image"
        case AudioBlock(transcript=str(text)):
            return TextBlock(text=text)
        case AudioBlock():
            kind = "A sound"
        case _:
            kind = "A file"
    name = block.name if isinstance(block, FileBlock) else None
    facts = [str(fact) for fact in (name, getattr(block, "media_type", None)) if fact]
    about = f" ({', '.join(facts)})" if facts else ""
    return TextBlock(text=f"[{kind}{about} was left out: this model cannot take it.]")


def unknown_model(profile: ModelProfile) -> str:
    """Return what to add to a refusal where the model is not known; empty where it is."""
    if profile.known:
        return ""
    return (
        f"; `{profile.model}` is not in the table of known models, so no more is assumed of it than "
        f"of any model at {_server(profile)}: declare what it can do with `profile=`, or with "
        "`profiles=load_profiles(...)`"
    )


def _server(profile: ModelProfile) -> str:
    return profile.provider or "its provider"


@dataclass(slots=True)
class _Fitting:
    """A request on its way to a form that fits; replaced and never changed."""

    request: ModelRequest
    profile: ModelProfile
    degrade: bool
    notices: list[str] = field(default_factory=list[str])

    def fit_media(self) -> None:
        refused = self.profile.refused_inputs
        if not refused:
            return
        # In one go, since every request of every run comes by here.
        if not any(block.type in refused for m in self.request.messages for block in m.content):
            return
        found: dict[str, None] = {}
        messages = [self._without_media(m, refused, found) for m in self.request.messages]
        for what in found:
            self._concede("input_modalities", what, "a text in its place says so")
        if found:
            self.request = replace(self.request, messages=messages)

    def _without_media(
        self, message: Message, refused: AbstractSet[str], found: dict[str, None]
    ) -> Message:
        if message.role == "assistant":
            # What a model has said itself: an adapter knows the forms that this has.
            refused = refused - self.profile.output_modalities if self.degrade else frozenset()
        if not _holds(message, refused):
            return message
        where = _PLACES[message.role]
        for block in message.content:
            if block.type in refused:
                found[f"a `{block.type}` block in {where}"] = None
        content = [told_media(b) if b.type in refused else b for b in message.content]
        return message.model_copy(update={"content": content})

    def fit_tools(self) -> None:
        request, choice = self.request, self.request.tool_choice
        if not request.tools:
            return
        if self.profile.tool_calling is False:
            raise self._refusal("tool_calling", f"tools ({len(request.tools)} are offered)")
        if self.profile.forced_tool_choice is not False or choice in ("auto", "none"):
            return
        if isinstance(choice, NamedTool) and all(t.name != choice.name for t in request.tools):
            return  # refused by the adapter, whatever its model takes
        self._concede("forced_tool_choice", "a forced tool choice", "asked for in words")
        wanted = f"the tool `{choice.name}`" if isinstance(choice, NamedTool) else "a tool"
        self.request = replace(self.request, tool_choice="auto")
        self.request = _told(self.request, f"Call {wanted} now; do not answer in text.")

    def fit_format(self) -> None:
        wanted, profile = self.request.response_format, self.profile
        match wanted:
            case JsonSchemaFormat() if profile.json_schema is False:
                self._concede(
                    "json_schema",
                    f"answers of a JSON schema (`{wanted.name}`)",
                    "asked for in words",
                )
                self.request = told_format(self.request)
                if profile.json_mode:
                    self.request = replace(self.request, response_format=JsonObjectFormat())
            case JsonObjectFormat() if profile.json_mode is False:
                self._concede("json_mode", "JSON answers without a schema", "asked for in words")
                self.request = told_format(self.request)
            case _:
                return

    def fit_settings(self) -> None:
        settings, profile = self.request.settings, self.profile
        changes: dict[str, Any] = {}
        if settings.temperature is not None and profile.temperature is False:
            changes["temperature"] = None
            self.notices.append(self._left_out("a temperature", "left out"))
        if settings.reasoning is not None and (capability := self._cannot_reason()):
            if asked := _asked_of_reasoning(settings.reasoning):
                self._concede(capability, asked, "left out")
            changes["reasoning"] = None
        most = profile.max_output_tokens
        if most is not None and (settings.max_tokens or 0) > most:
            asked = f"`max_tokens` of {settings.max_tokens:,}"
            self._concede("max_output_tokens", asked, f"lowered to its {most:,}")
            changes["max_tokens"] = most
        if changes:
            settings = settings.model_copy(update=changes)
            self.request = replace(self.request, settings=settings)

    def _cannot_reason(self) -> str | None:
        """Return the field that says that the model takes no settings of reasoning."""
        for name in ("reasoning", "reasoning_effort"):
            if getattr(self.profile, name) is False:
                return name
        return None

    def _concede(self, capability: str, what: str, how: str) -> None:
        """Note that something was changed, or refuse the request where it must not be."""
        if not self.degrade:
            raise self._refusal(capability, what)
        self.notices.append(self._left_out(what, how))

    def _left_out(self, what: str, how: str) -> str:
        return f"`{self.profile.model}` at {_server(self.profile)} cannot take {what}: {how}"

    def _refusal(self, capability: str, what: str) -> CapabilityError:
        profile = self.profile
        return CapabilityError(
            f"`{profile.model}` at {_server(profile)} cannot take {what}, by its "
            f"`profile.{capability}`: choose a model that can, leave it out, or run with "
            f'`RunPolicy(unsupported="degrade")`{unknown_model(profile)}',
            model=profile.model,
            provider=profile.provider,
            capability=capability,
        )


def _asked_of_reasoning(config: ReasoningConfig) -> str:
    """Return what a request asks of a model's reasoning; not to reason asks nothing of it."""
    asked = (
        ("a reasoning effort", config.effort not in (None, "none")),
        ("`budget_tokens`", config.budget_tokens is not None),
        ("summaries of reasoning", config.summary is not None),
    )
    return ", ".join(words for words, is_asked in asked if is_asked)


def _told(request: ModelRequest, text: str) -> ModelRequest:
    return instructed(request, SystemMessage(content=text))


def _holds(message: Message, kinds: AbstractSet[str]) -> bool:
    return any(block.type in kinds for block in message.content)
