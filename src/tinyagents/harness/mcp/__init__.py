"""MCP, the Model Context Protocol: tools of a tool server, and tools served to others.

Needs the extra ``mcp``, the official package, which is loaded at the first use.
"""

from ._client import McpClient
from ._served import CallContext, ServedCall
from ._server import McpServer
from ._transports import McpHttp, McpStdio

__all__ = ("CallContext", "McpClient", "McpHttp", "McpServer", "McpStdio", "ServedCall")
