"""The suite for anything that is a chat model."""

from ._chat_failures import FailureBehaviour
from ._chat_input import InputBehaviour
from ._chat_structured import StructuredBehaviour
from ._chat_text import TextBehaviour
from ._chat_tools import ToolBehaviour
from ._chat_usage import UsageBehaviour


class ChatModelConformance(
    TextBehaviour,
    ToolBehaviour,
    StructuredBehaviour,
    InputBehaviour,
    UsageBehaviour,
    FailureBehaviour,
):
    """Tests that every :class:`~tinyagents.harness.model.ChatModel` passes.

    Inherit it in a class that pytest collects, and say how a model is made::

        class TestMyModel(ChatModelConformance):
            def model(self, script):
                return MyModel(script)

    The tests are asynchronous and marked for anyio's plugin of pytest. What the model's profile does
    not declare is skipped, with the name of the flag; what it declares must work.

    For a model behind HTTP there is :class:`HttpChatModelConformance`.
    """
