"""A hook of mkdocs: a page of the API reference for each public module under src."""

import re
from collections.abc import Iterator
from pathlib import Path

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files

SOURCES = Path(__file__).parents[1] / "src"
ROOTS = {"tinyagents", "tinyagents.harness", "tinyagents.testkit"}
"""Packages whose names are documented where they come from."""

ROLE = re.compile(r":(?:attr|class|data|exc|func|meth|mod):<code>~?([\w.]+)</code>")
"""A cross-reference of a docstring, ``:class:`~module.Name```, as Markdown renders it."""


def public_modules() -> Iterator[str]:
    """The dotted names of the modules no part of which starts with an underscore, in order."""
    for file in sorted(SOURCES.rglob("*.py")):
        module = file.relative_to(SOURCES).with_suffix("")
        parts = module.parent.parts if module.name == "__init__" else module.parts
        if not any(part.startswith("_") for part in parts):
            yield ".".join(parts)


def on_config(config: MkDocsConfig) -> MkDocsConfig:
    """List the pages after the written ones."""
    pages = [{module: f"api/{module}.md"} for module in public_modules()]
    if config.nav is not None:
        config.nav.append({"API reference": pages})
    return config


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Write the pages, in memory."""
    for module in public_modules():
        text = f"# {module}\n\n::: {module}\n"
        if module in ROOTS:
            text += "    options:\n      members: false\n"
        files.append(File.generated(config, f"api/{module}.md", content=text))
    return files


def on_page_content(html: str, **_: object) -> str:
    """Make links of the cross-references in docstrings."""
    return ROLE.sub(_link, html)


def _link(role: re.Match[str]) -> str:
    name = role[1].rpartition(".")[2]
    return f'<autoref identifier="{role[1]}" optional><code>{name}</code></autoref>'
