"""What is known of the servers of the Messages API, and what a Claude model's name tells."""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Final, Literal, TypeAlias

from ..model import ModelProfile
from ._presets import ServerPreset
from ._profile_table import ProfileTable
from ._profiles import with_facts

ThinkingStyle: TypeAlias = Literal["budget", "either", "adaptive"]
"""How thinking is asked for: ``thinking.budget_tokens``, ``output_config.effort``, or both."""


@dataclass(frozen=True, slots=True, kw_only=True)
class MessagesPreset(ServerPreset):
    """A provider of the Messages API, and where it departs from it."""

    auth: str = "anthropic"
    endpoint_paths: tuple[str, ...] = ("/messages",)
    sealed_thinking: bool = True
    """Thinking goes back only with the provider's seal: it refuses a block without one."""

    @property
    def data_name(self) -> str:
        """What is kept under ``provider_data`` is called so: its chat API knows nothing of it."""
        return self.name if self.name == "anthropic" else f"{self.name}_messages"


MESSAGES_PROVIDERS: Final[Mapping[str, MessagesPreset]] = MappingProxyType(
    {
        "anthropic": MessagesPreset(
            name="anthropic",
            base_url="https://api.anthropic.com/v1",
            base_url_env="ANTHROPIC_BASE_URL",
            key_env=("ANTHROPIC_API_KEY",),
        ),
        # Any other server: nothing is assumed of it, and no key leaves that was not given for it.
        "compatible": MessagesPreset(
            name="compatible",
            key_required=False,
            sealed_thinking=False,
        ),
    }
)
"""Servers that speak the Messages API, by name."""

# The version in `claude-opus-4-6`, `claude-3-7-sonnet-20250219` or `anthropic.claude-haiku-4-5-v1`;
# a date behind it is not a part of it.
_VERSION: Final = re.compile(r"claude-(?:[a-z]+-)?(\d{1,2})(?:[-.](\d{1,2}))?(?!\d)")
_UNKNOWN: Final = 99
"""The version of a name that tells none: newer than all that are known."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ClaudeTraits:
    """What a model takes, as far as its name tells."""

    thinking: ThinkingStyle = "budget"
    sampling: bool = True
    """Takes ``temperature`` and ``top_p``."""
    one_sampling: bool = False
    """Takes either of the two, and not both."""
    json_schema: bool | None = None
    """Its answer can be held to a JSON schema."""
    reasoning: bool | None = None


def claude_traits(model: str) -> ClaudeTraits:
    """Return what a model takes. A Claude without a known version is taken to be of the newest.

    Adaptive thinking alone, and no sampling, from 4.7 on: NousResearch/hermes-agent issue 11137 and
    openrouter.ai/docs on migrating to Claude 4.7, 2026. One of temperature and top_p from 4.1 on:
    open-webui/pipelines pull request 546, 2025. Sizes and prices are in the table of models.
    """
    lowered = model.lower()
    if "claude" not in lowered:
        return ClaudeTraits()
    version = _version(lowered)
    return ClaudeTraits(
        thinking="adaptive" if version >= (4, 7) else "either" if version >= (4, 6) else "budget",
        sampling=version < (4, 7),
        one_sampling=version >= (4, 1),
        json_schema=version >= (4, 5) or ("opus" in lowered and version == (4, 1)),
        reasoning=version >= (3, 7),
    )


def _version(model: str) -> tuple[int, int]:
    found = _VERSION.search(model)
    return (int(found[1]), int(found[2] or 0)) if found else (_UNKNOWN, 0)


def derive_messages_profile(
    preset: ServerPreset, model: str, profiles: ProfileTable | None = None
) -> ModelProfile:
    """Return what is known of a model behind the Messages API from its name."""
    traits = claude_traits(model)
    return with_facts(
        ModelProfile(
            provider=preset.name,
            model=model,
            input_modalities=frozenset({"text", "image", "file"}),
            tool_calling=True,
            parallel_tool_calls=True,
            forced_tool_choice=True,
            streaming=True,
            streaming_tool_chunks=True,
            native_structured_output=traits.json_schema,
            json_schema=traits.json_schema,
            json_mode=False,
            reasoning=traits.reasoning,
            reasoning_effort=traits.reasoning,
            temperature=traits.sampling,
        ),
        profiles,
    )
