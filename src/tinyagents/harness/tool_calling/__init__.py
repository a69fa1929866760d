"""Tool calls that a provider does not hand over ready made.

Repairs the arguments that models write, and will hold the dialects for models without native calls.
"""

from ._relaxed import relaxed_object
from ._repair import repair_arguments, strip_template_markers

__all__ = ("relaxed_object", "repair_arguments", "strip_template_markers")
