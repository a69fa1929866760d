"""An agent that edits files: in a copy, whose changes are looked at before they are brought back."""

from pathlib import Path
from tempfile import TemporaryDirectory

import anyio

from tinyagents import AgentHarness
from tinyagents.harness.tools import file_tools
from tinyagents.harness.workspace import TemporaryCopyWorkspace, open_workspace
from tinyagents.testkit import ScriptedModel, call, say

# Stands for a model: it looks, tries to get out, and fixes what it was asked to.
model = ScriptedModel(
    [
        [call("grep_files", pattern="def area"), call("read_file", path="/etc/passwd")],
        [call("read_file", path="shapes.py")],
        [call("edit_file", path="shapes.py", old_text="w + h", new_text="w * h")],
        say("`area` adds where it should multiply: fixed."),
    ]
)


def start_project(folder: str) -> Path:
    """Write the file that has a mistake."""
    file = Path(folder, "shapes.py")
    file.write_text("def area(w, h):\n    return w + h\n")
    return file


async def main() -> None:
    with TemporaryDirectory() as project:
        file = start_project(project)
        copies = TemporaryCopyWorkspace(project)
        async with open_workspace(copies, run_id="fix-area") as workspace:
            agent = AgentHarness(model=model, tools=file_tools(), workspace=workspace)
            run = await agent.invoke(None, "The area of 2 by 3 is 5. Why?")
            for message in run.messages:
                print(f"{message.role}: {message.text}")
            print(await copies.changes(workspace))
            await copies.apply(workspace)
        print(await anyio.Path(file).read_text())


if __name__ == "__main__":
    anyio.run(main)
