from pathlib import Path

from tests.harness.providers import outcomes
from tests.harness.providers.recorded import MODELS


def test_every_folder_of_recordings_is_read_by_one_adapter(shared: Path) -> None:
    folders = {path.name for path in (shared / "fixtures/providers").iterdir() if path.is_dir()}
    assert folders == set(MODELS)


def files_of(shared: Path) -> set[tuple[str, str]]:
    return {(path.parent.name, path.stem) for path in shared.glob("fixtures/providers/*/*.json")}


async def test_every_recording_becomes_an_answer_or_a_typed_error(shared: Path) -> None:
    rows = await outcomes.table(shared)
    files = files_of(shared)
    assert {(row.api, row.case) for row in rows} == files
    assert len(rows) == len(files)
    untyped = {"ModelError", "TinyAgentsError", "no reason"}
    assert [row for row in rows if row.outcome in untyped] == []
