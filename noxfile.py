"""Every check of the project, one session each: ``python -m nox -s SESSION [-- ARGUMENTS]``.

``nox -l`` lists them; ``-R`` reuses the environments of the last time.
"""

import os
import shutil
from pathlib import Path

import nox

nox.needs_version = ">=2025.2.9"
nox.options.default_venv_backend = "uv|virtualenv"
nox.options.download_python = "never"
nox.options.error_on_missing_interpreters = False  # even where CI is set: it is skipped
nox.options.sessions = ["tests", "lint", "types", "imports"]

ROOT = Path(__file__).parent
PYPROJECT = nox.project.load_toml("pyproject.toml")
PYTHONS = ["3.11", "3.12", "3.13"]
WORKERS = ("--numprocesses=auto", "--maxprocesses=4")

ONCE = (
    *("tests/harness/approval", "tests/harness/artifacts", "tests/harness/guarded_fetch"),
    *("tests/harness/handoff", "tests/harness/mcp", "tests/harness/middleware"),
    *("tests/harness/multimodal", "tests/harness/process", "tests/harness/prompt"),
    *("tests/harness/redaction", "tests/harness/summarization", "tests/harness/tool_calling"),
    *(
        f"tests/harness/providers/{path}"
        for path in (
            *("anthropic_messages", "conformance", "gemini", "ollama", "openai_responses"),
            *("test_adaptation.py", "test_answers.py", "test_guided_tools.py", "test_llmock.py"),
            *("test_matrix.py", "test_recorded.py"),
        )
    ),
    "tests/harness/testkit/test_conformance_fakes.py",
    "tests/harness/testkit/test_conformance_faults.py",
    "tests/test_middleware_pages.py",
    "tests/test_prose.py",
    "tests/wire",
)
"""What takes long and says the same on every interpreter: the session ``tests`` alone runs it."""

FILES = (
    *("tests/harness/tools", "tests/harness/workspace"),
    *("tests/harness/test_safe_open.py", "tests/harness/test_safe_writing.py"),
)
"""Tests of files and folders, which depend on the interpreter and on no package."""


def group(*names: str) -> tuple[str, ...]:
    """The requirements of the dependency groups of these names."""
    return nox.project.dependency_groups(PYPROJECT, *names)


def shared_env() -> dict[str, str]:
    """Names the shared folder, for tests that run elsewhere than in the checkout."""
    shared = os.environ.get("TINYAGENTS_SHARED") or str(ROOT.parent / "shared")
    return {"TINYAGENTS_SHARED": shared} if Path(shared).is_dir() else {}


def run_tests(session: nox.Session, *arguments: str) -> None:
    """Run pytest with the session's arguments on the package as it is installed there."""
    session.run("python", "-m", "pytest", *WORKERS, *arguments, *session.posargs, env=shared_env())


def all_but(*paths: str) -> list[str]:
    """The arguments that leave these files and folders out."""
    return [f"--ignore={path}" for path in paths]


@nox.session
def demo(session: nox.Session) -> None:
    """Run examples/demo.py with nothing installed but the package and its dependencies."""
    session.install("-e", ".")
    session.run("python", "examples/demo.py", *session.posargs)


@nox.session
def tests(session: nox.Session) -> None:
    """Run the tests on the current interpreter."""
    session.install("-e", ".", *group("test"))
    run_tests(session)


@nox.session(python=PYTHONS)
def pythons(session: nox.Session) -> None:
    """Run the tests on every supported interpreter that is installed, all but ``ONCE``."""
    session.install("-e", ".", *group("test"))
    run_tests(session, *all_but(*ONCE))


@nox.session
def wheel(session: nox.Session) -> None:
    """Build the wheel and run on it what shows that it is whole, from a copy without the sources."""
    folder = Path(session.create_tmp()).resolve()
    shutil.rmtree(folder)
    session.install("build")
    session.run("python", "-m", "build", "--outdir", str(folder / "dist"))
    (built,) = (folder / "dist").glob("*.whl")

    copy = folder / "copy"
    for name in ("tests", "examples", "benchmarks", "docs"):
        shutil.copytree(ROOT / name, copy / name, ignore=shutil.ignore_patterns("__pycache__"))
    for name in ("pyproject.toml", "README.md", "CHANGELOG.md"):
        shutil.copy(ROOT / name, copy)
    session.install(str(built), *group("test"))
    session.chdir(copy)
    # What a wheel can lack: a module, a data file, an entry point, a dependency.
    plugin = "tests/harness/testkit/test_pytest_plugin.py"
    run_tests(session, "tests/test_public_api.py", "tests/cases/test_fresh_imports.py", plugin)


@nox.session
def lowest(session: nox.Session) -> None:
    """Run the tests with the lowest versions of the packages, all but ``ONCE`` and ``FILES``."""
    session.install("uv")
    pins = Path(session.create_tmp()).resolve() / "lowest.txt"
    python = ("--python", str(session.virtualenv.location))
    session.run(
        "uv", "pip", "compile", "--quiet", "--resolution=lowest-direct", "--all-extras", *python,
        "pyproject.toml", f"--output-file={pins}",
    )  # fmt: skip
    # Constraints, so that what only the tests need comes in its newest version that fits.
    extras = ",".join(PYPROJECT["project"]["optional-dependencies"])
    session.run(
        "uv", "pip", "install", *python, f"--constraint={pins}", "-e", f".[{extras}]",
        *group("test"),
    )  # fmt: skip
    # `create_tmp` has put it inside the repository, where no test of Git expects to be.
    session.env.pop("TMPDIR", None)
    run_tests(session, *all_but(*ONCE, *FILES))


@nox.session
def coverage(session: nox.Session) -> None:
    """Run the tests in one process and report the lines and branches that none of them ran."""
    session.install("-e", ".", *group("test"))
    session.run("coverage", "run", "-m", "pytest", *session.posargs, env=shared_env())
    session.run("coverage", "report")


@nox.session
def real(session: nox.Session) -> None:
    """Run tests/real against a real small model on this machine (opt-in: it installs 0.5 GB)."""
    session.install("-e", ".", *group("test", "real"))
    env = shared_env() | {"TINYAGENTS_REAL": "1"}
    session.run("python", "-m", "pytest", "tests/real", *session.posargs, env=env)


@nox.session
def aimock(session: nox.Session) -> None:
    """Run tests/aimock against the npm package aimock on this machine (opt-in: it needs node)."""
    session.install("-e", ".", *group("test"))
    folder = Path(session.create_tmp()).resolve()
    session.run(
        "npm", "install", "--silent", "--no-audit", "--no-fund", f"--prefix={folder}",
        "@copilotkit/aimock@1.43.0", external=True,
    )  # fmt: skip
    env = shared_env() | {"TINYAGENTS_AIMOCK": str(folder / "node_modules/.bin/llmock")}
    session.run("python", "-m", "pytest", "tests/aimock", *session.posargs, env=env)


@nox.session
def lint(session: nox.Session) -> None:
    """Check the format and the lint rules."""
    session.install(*group("lint"))
    session.run("ruff", "format", "--check")
    session.run("ruff", "check", *session.posargs)


@nox.session
def types(session: nox.Session) -> None:
    """Check the types with mypy and pyright, and that the public API is typed completely."""
    session.install("-e", ".", *group("test", "types"))
    session.run("mypy")
    session.run("pyright")
    session.run("pyright", "--ignoreexternal", "--verifytypes", "tinyagents")


@nox.session
def imports(session: nox.Session) -> None:
    """Check that imports point one way."""
    session.install("-e", ".", *group("imports"))
    session.run("lint-imports", *session.posargs)


@nox.session
def docs(session: nox.Session) -> None:
    """Build the documentation into site/; ``-- serve`` serves it instead."""
    session.install("-e", ".", *group("docs"))
    quiet = {"NO_MKDOCS_2_WARNING": "1"}
    session.run("mkdocs", *(session.posargs or ("build", "--strict")), env=quiet)


@nox.session
def examples(session: nox.Session) -> None:
    """Run every example, offline; each must exit with 0."""
    session.install("-e", ".[mcp,sqlite]")
    for example in sorted((ROOT / "examples").glob("*.py")):
        session.run("python", str(example.relative_to(ROOT)))


@nox.session
def bench(session: nox.Session) -> None:
    """Measure the package against a bare loop: ``-- --help`` says what can be chosen."""
    session.install("-e", ".")
    session.run("python", "benchmarks/run.py", *session.posargs)


@nox.session
def cache(session: nox.Session) -> None:
    """Measure an answer from the response cache beside one from a server."""
    session.install("-e", ".")
    session.run("python", "benchmarks/cache.py", *session.posargs)


@nox.session
def sse(session: nox.Session) -> None:
    """Measure how fast streams are read, beside OpenAI's own client."""
    session.install("-e", ".", *group("rival"))
    session.run("python", "benchmarks/sse.py", *session.posargs)
