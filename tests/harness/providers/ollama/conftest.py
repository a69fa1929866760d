from collections.abc import Iterator

import httpx
import pytest
import respx

from tests.harness.providers.ollama.asking import ANSWER


@pytest.fixture
def router() -> Iterator[respx.MockRouter]:
    with respx.mock(assert_all_called=False) as router:
        router.route().mock(return_value=httpx.Response(200, json=ANSWER))
        yield router


@pytest.fixture(autouse=True)
def _no_server_of_this_machine(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("OLLAMA_HOST", "OLLAMA_API_KEY"):
        monkeypatch.delenv(name, raising=False)
