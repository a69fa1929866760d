"""What is told of servers and calls holds no keys."""

import pytest

from tinyagents.harness.errors import ToolServerError
from tinyagents.harness.mcp import McpClient, McpHttp, McpStdio, ServedCall

KEY = "k3y-of-somebody"


@pytest.mark.parametrize(
    "transport",
    [
        McpStdio("server", ["--api-key", KEY]),
        McpStdio("server", env={"API_KEY": KEY}),
        McpHttp("https://tools.example/mcp", headers={"Authorization": KEY}),
        McpHttp(f"https://user:{KEY}@tools.example/mcp?key={KEY}"),
    ],
    ids=["arguments", "environment", "headers", "address"],
)
def test_keys_of_a_server_are_not_shown(transport: McpStdio | McpHttp) -> None:
    assert KEY not in repr(transport)
    assert KEY not in repr(McpClient(transport))


async def test_the_error_of_a_server_that_cannot_be_started_holds_no_key() -> None:
    client = McpClient(McpStdio("no-such-program-here", [KEY], env={"API_KEY": KEY}))
    with pytest.raises(ToolServerError) as caught:
        await client.__aenter__()
    assert KEY not in str(caught.value)
    assert KEY not in repr(caught.value)


def test_headers_of_a_served_call_are_not_shown() -> None:
    served = ServedCall(tool="forecast", client=None, headers={"authorization": KEY})
    assert KEY not in repr(served)
