"""The models of the testkit and the mock pass the suite that other models run."""

from collections.abc import Sequence

from tinyagents.harness.model import ChatModel
from tinyagents.testkit import ScriptedModel, Step
from tinyagents.testkit.conformance import ChatModelConformance


class TestScriptedModel(ChatModelConformance):
    def model(self, script: Sequence[Step]) -> ChatModel:
        return ScriptedModel(script)
