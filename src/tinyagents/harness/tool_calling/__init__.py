"""Tool calls that a provider does not hand over ready made.

Repairs the arguments that models write, and will hold the dialects for models without native calls.
"""

from ._repair import first_object, repair_arguments, strip_template_markers

__all__ = ("first_object", "repair_arguments", "strip_template_markers")
