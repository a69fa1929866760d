"""The names that others rely on: where they are, that they load, and that nothing else shows."""

import ast
import pkgutil
import subprocess
import sys
from importlib import import_module
from pathlib import Path
from types import ModuleType
from typing import TypeVar

import pytest

import tinyagents

PLUGIN = "tinyagents.testkit.pytest_plugin"


def public_modules() -> list[str]:
    found = pkgutil.walk_packages(tinyagents.__path__, "tinyagents.")
    names = [module.name for module in found if "._" not in module.name]
    return ["tinyagents", *(name for name in names if name != PLUGIN)]


def is_package(module: ModuleType) -> bool:
    return hasattr(module, "__path__")


def exported(module: ModuleType) -> tuple[str, ...]:
    names: tuple[str, ...] = getattr(module, "__all__", ())
    return names


def order(name: str) -> tuple[int, str]:
    """Constants, then classes, then functions, as ruff sorts them."""
    return (0 if name.isupper() else 1 if name[0].isupper() else 2), name


@pytest.mark.parametrize("name", public_modules())
def test_the_exported_names_are_sorted_and_load(name: str) -> None:
    module = import_module(name)
    names = exported(module)
    assert list(names) == sorted(set(names), key=order)
    for each in names:
        assert getattr(module, each) is getattr(module, each)
    assert set(names) <= set(dir(module))
    with pytest.raises(AttributeError, match="no_such_name"):
        _ = module.no_such_name


@pytest.mark.parametrize("name", public_modules())
def test_what_a_module_offers_is_exported(name: str) -> None:
    module = import_module(name)
    if is_package(module):
        offered = imported_from_inside(module)
    else:
        offered = {
            each
            for each, value in vars(module).items()
            if getattr(value, "__module__", None) == name
            and not each.startswith("_")
            and not isinstance(value, TypeVar)
        }
    assert offered <= set(exported(module)), "not in `__all__`"


def imported_from_inside(package: ModuleType) -> set[str]:
    """The names that the package's file takes from its own parts, for type checkers too."""
    assert package.__file__ is not None
    tree = ast.parse(Path(package.__file__).read_text("utf-8"))
    taken = [n for n in ast.walk(tree) if isinstance(n, ast.ImportFrom) and n.level and n.module]
    names = {alias.asname or alias.name for node in taken for alias in node.names}
    return {name for name in names if not name.startswith("_")}


@pytest.mark.parametrize("name", [n for n in public_modules() if is_package(import_module(n))])
def test_a_package_shows_its_names_and_its_parts_and_little_else(name: str) -> None:
    package = import_module(name)
    # pytest puts names of its own, which are no identifiers, into modules of plugins.
    shown = {each for each in dir(package) if each.isidentifier() and not each.startswith("_")}
    parts = {module.name for module in pkgutil.iter_modules(package.__path__)}
    assert shown - set(exported(package)) - parts <= {"TYPE_CHECKING", "Any", "import_module"}


ARCHITECTURE = {
    "tinyagents": """
        AgentHarness AgentRun AgentStream RunHandle RunSnapshot RunConfig RunContext RunLimits
        RunPolicy tool ToolContext ToolResult ToolError Middleware CancellationToken SystemMessage
        UserMessage AssistantMessage ToolMessage TextBlock JsonBlock ImageBlock AudioBlock FileBlock
        ToolCallBlock ToolResultBlock ReasoningBlock CitationBlock RefusalBlock
        ProviderExtensionBlock Usage TinyAgentsError
    """,
    "tinyagents.harness.providers": """
        OpenAIChatModel OpenAIResponsesModel AnthropicModel GeminiModel OllamaModel MockModel
        resolve_model PROVIDERS
    """,
    "tinyagents.harness.model": """
        ChatModel ModelRequest ModelResponse ModelSettings ModelProfile ModelHint ModelRegistry
        ResolvedModel merge_stream
    """,
    "tinyagents.harness.errors": """
        AuthenticationError RateLimitError ServerError NetworkError ProviderTimeoutError
        BadRequestError ContextOverflowError ContentFilterError MalformedResponseError
        InvalidRequestError LimitExceededError RunTimeoutError ToolNotFoundError
        StructuredOutputError EmptyResponseError TinyAgentsError
    """,
    "tinyagents.harness.stream": """
        TextDelta ReasoningDelta ToolCallDelta MessageCompleted ToolStarted ToolProgress
        ToolCompleted StateUpdate UsageUpdate CostUpdate EventChunk Final
    """,
    "tinyagents.harness.middleware": "Middleware before_model",
    "tinyagents.harness.prompt": "PromptTemplate MessagesTemplate PromptBuilder PromptCacheLayout",
    "tinyagents.harness.policy": "UnknownToolPolicy ToolTimeoutSettings",
    "tinyagents.harness.context": "StopWithFinal Interrupt Jump",
    "tinyagents.harness.cost": "estimate_cost CostTotals",
    "tinyagents.harness.workspace": "WorkspaceDescriptor WorkspaceIsolation SharedRootWorkspace",
    "tinyagents.testkit": """
        ScriptedModel ScriptedChatModel say call think fail FakeChatModel FakeStreamingModel
        SlowModel FakeTool EventRecorder DeterministicClock DeterministicIds FakeSleep
        assert_trajectory Trajectory assert_event_grammar block_network
    """,
    "tinyagents.testkit.conformance": "ChatModelConformance",
}
"""The names of section 12 of the architecture that exist, by their homes."""

LATER = {
    "tinyagents": "Budget",
    "tinyagents.testkit": "InMemoryShortTermMemory InMemoryStore",
    "tinyagents.harness.store": "Store",
    "tinyagents.harness.memory": "ShortTermMemory",
    "tinyagents.graph": "StateGraph",
}
"""Those that come with later features."""


def pairs(table: dict[str, str]) -> list[tuple[str, str]]:
    return [(home, name) for home, names in table.items() for name in names.split()]


@pytest.mark.parametrize(("home", "name"), pairs(ARCHITECTURE))
def test_a_name_that_outside_code_relies_on_is_at_home(home: str, name: str) -> None:
    module = import_module(home)
    assert name in exported(module)
    assert getattr(module, name) is not None


@pytest.mark.parametrize(("home", "name"), pairs(LATER))
def test_a_name_that_has_come_is_no_longer_listed_as_later(home: str, name: str) -> None:
    with pytest.raises((ImportError, AttributeError)):
        getattr(import_module(home), name)


def test_scripted_chat_model_is_another_name_of_scripted_model() -> None:
    from tinyagents.testkit import ScriptedChatModel, ScriptedModel

    assert ScriptedChatModel is ScriptedModel


@pytest.mark.parametrize(
    "source", ["import tinyagents.testkit", "from tinyagents.testkit import *"]
)
def test_the_testkit_needs_no_pytest(source: str) -> None:
    blocked = "import sys\nsys.modules['pytest'] = sys.modules['_pytest'] = None\n"
    subprocess.run([sys.executable, "-c", blocked + source], check=True)
