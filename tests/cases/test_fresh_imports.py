"""What a fresh process loads: `import tinyagents` next to nothing, an agent no more than it uses."""

import subprocess
import sys

import pytest

HEAVY = {
    "anthropic", "boto3", "google", "groq", "h2", "httpcore", "httpx", "httpx2", "huggingface_hub",
    "jsonschema", "langchain_core", "litellm", "mistralai", "numpy", "openai", "opentelemetry",
    "pandas", "pytest", "requests", "tiktoken", "torch", "transformers", "trio",
}  # fmt: skip
"""Clients of providers, HTTP, numbers, telemetry and tests."""

PYDANTIC_AND_ANYIO = {
    "annotated_types", "anyio", "exceptiongroup", "orjson", "pydantic", "pydantic_core", "sniffio",
    "tinyagents", "typing_extensions", "typing_inspection",
}  # fmt: skip


def loaded_by(source: str) -> set[str]:
    """The names of all modules after a fresh interpreter has run the source."""
    script = f"import sys\nbefore = set(sys.modules)\n{source}\nprint(*(set(sys.modules) - before))"
    # Isolated from the environment, so that no coverage tool or site hook counts.
    command = [sys.executable, "-I", "-c", script]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return set(done.stdout.split())


def packages(modules: set[str]) -> set[str]:
    """The installed packages among them."""
    tops = {name.partition(".")[0] for name in modules}
    return {name for name in tops - sys.stdlib_module_names if not name.startswith("_")}


def test_importing_the_package_loads_nothing_but_itself() -> None:
    # C70
    modules = loaded_by("import tinyagents")
    assert packages(modules) == {"tinyagents"}
    assert [name for name in modules if name.startswith("tinyagents.")] == []
    assert "asyncio" not in modules


@pytest.mark.parametrize(
    "source",
    [
        "from tinyagents import AgentHarness, tool",
        "from tinyagents.harness.providers import OpenAIChatModel\n"
        "OpenAIChatModel('gpt-5-mini', api_key='k')",
        "from tinyagents import AgentHarness, tool\n"
        "from tinyagents.testkit import ScriptedModel, call, say\n"
        "@tool\n"
        "async def add(a: int, b: int) -> int: return a + b\n"
        "model = ScriptedModel([call('add', a=1, b=2), say('3')])\n"
        "run = AgentHarness(model=model, tools=[add]).invoke_sync(None, 'hi')\n"
        "assert run.text == '3'",
    ],
    ids=["the names", "a model", "a run"],
)
def test_an_agent_loads_no_client_no_validator_and_no_telemetry(source: str) -> None:
    # C70
    found = packages(loaded_by(source))
    assert found & HEAVY == set()
    assert found <= PYDANTIC_AND_ANYIO


ADAPTERS = {
    "AnthropicModel": "_anthropic",
    "GeminiModel": "_gemini",
    "OllamaModel": "_ollama",
    "OpenAIChatModel": "_openai_chat",
    "OpenAIResponsesModel": "_openai_responses",
}
"""Each adapter's class, and the module that no other adapter needs."""


@pytest.mark.parametrize("name", ADAPTERS)
def test_an_adapter_loads_no_other_and_nothing_that_reads_files_of_users(name: str) -> None:
    modules = loaded_by(f"from tinyagents.harness.providers import {name}")
    assert packages(modules) <= PYDANTIC_AND_ANYIO
    loaded = {own for own in ADAPTERS.values() if f"tinyagents.harness.providers.{own}" in modules}
    assert loaded == {ADAPTERS[name]}
    parts = {module.split(".")[2] for module in modules if module.startswith("tinyagents.harness.")}
    assert parts & {"agent_loop", "guarded_fetch", "multimodal", "runtime", "testkit"} == set()


MAKERS = {
    "file_tools": "file_tools()",
    "http_fetch_tool": "http_fetch_tool",
    "shell_tool": "shell_tool",
    "time_tools": "time_tools()",
    "todo_tools": "todo_tools()",
}
"""What makes built-in tools; fetching loads its client when it is first used."""

OPTIONAL = {
    "approval",
    "artifacts",
    "guarded_fetch",
    "handoff",
    "mcp",
    "process",
    "safe_open",
    "tools",
}
"""What an agent without tools that touch anything never loads."""


def features(modules: set[str]) -> set[str]:
    """The names of the harness's features among the modules."""
    return {each.split(".")[2] for each in modules if each.startswith("tinyagents.harness.")}


def test_an_agent_loads_nothing_of_what_guards_tools_that_it_has_not() -> None:
    modules = loaded_by(
        "from tinyagents import AgentHarness, tool\n"
        "from tinyagents.testkit import ScriptedModel, call, say\n"
        "@tool\n"
        "async def add(a: int, b: int) -> int: return a + b\n"
        "model = ScriptedModel([call('add', a=1, b=2), say('3')])\n"
        "AgentHarness(model=model, tools=[add]).invoke_sync(None, 'hi')"
    )
    assert features(modules) & OPTIONAL == set()
    assert {name for name in modules if ".middleware.library._" in name} == set()


@pytest.mark.parametrize("name", MAKERS)
def test_a_built_in_tool_loads_no_other_tool_and_no_client(name: str) -> None:
    modules = loaded_by(f"from tinyagents.harness.tools import {name}\n{MAKERS[name]}")
    assert packages(modules) <= PYDANTIC_AND_ANYIO
    needed = {
        "file_tools": {"safe_open"},
        "http_fetch_tool": {"guarded_fetch"},
        "shell_tool": {"process"},
    }
    assert features(modules) & OPTIONAL == {"tools", *needed.get(name, set())}


def test_describing_a_tool_server_loads_no_package_of_it() -> None:
    modules = loaded_by(
        "from tinyagents.harness.mcp import McpClient, McpHttp, McpServer, McpStdio\n"
        "McpHttp('https://tools.example/mcp'), McpStdio('server')"
    )
    assert packages(modules) <= PYDANTIC_AND_ANYIO


WATCHED = """
import sys
seen = []
LOUD = ("socket.connect", "socket.getaddrinfo", "socket.sendto", "subprocess.Popen", "os.exec",
        "os.posix_spawn", "os.system", "os.remove", "os.rename", "os.mkdir", "webbrowser.open")
def watch(event, arguments):
    writes = event == "open" and isinstance(arguments[1], str) and set(arguments[1]) & set("wax+")
    if (event in LOUD or writes) and not str(arguments[0]).endswith(".pyc"):
        seen.append((event, str(arguments[0])))
sys.dont_write_bytecode = True
sys.addaudithook(watch)
"""


def test_nothing_leaves_the_process_but_the_calls_that_were_configured() -> None:
    # C70: no telemetry, no version check, no download, no file.
    source = WATCHED + (
        "from tinyagents import AgentHarness, RunPolicy, tool\n"
        "from tinyagents.harness.providers import OpenAIChatModel, resolve_model\n"
        "from tinyagents.testkit import ScriptedModel, call, say\n"
        "@tool\n"
        "def add(a: int, b: int) -> int: return a + b\n"
        "resolve_model('groq:llama', api_key='k')\n"
        "model = ScriptedModel([call('add', a=1, b=2), say('3')])\n"
        "agent = AgentHarness(model=model, tools=[add], policy=RunPolicy.resilient())\n"
        "run = agent.invoke_sync(None, 'hi')\n"
        "assert run.text == '3' and run.events and run.snapshot.model_dump_json()\n"
        "assert seen == [], seen"
    )
    loaded_by(source)
