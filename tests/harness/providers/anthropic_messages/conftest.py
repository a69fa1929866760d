"""The server that every request of these tests reaches."""

from collections.abc import Iterator

import httpx
import pytest
import respx

from tests.harness.providers.anthropic_messages.requests import ANSWER


@pytest.fixture
def router() -> Iterator[respx.MockRouter]:
    with respx.mock(assert_all_called=False) as router:
        router.route().mock(return_value=httpx.Response(200, json=ANSWER))
        yield router
