"""The agent harness: everything that surrounds a model call.

Import from the feature that you need, such as ``tinyagents.harness.model``; this package
imports none of them, so that loading one feature never loads another.
"""
