"""A router that answers every call of a test."""

from collections.abc import Iterator

import httpx
import pytest
import respx

from tests.harness.providers.openai_responses.asking import ANSWER


@pytest.fixture
def router() -> Iterator[respx.MockRouter]:
    with respx.mock(assert_all_called=False) as router:
        router.route().mock(return_value=httpx.Response(200, json=ANSWER))
        yield router
