"""Rows of the kernel matrix on demand."""

from slackwater.gram.gram import Gram, Kept, add_rows
from slackwater.gram.memory import cache_bytes

__all__ = ["Gram", "Kept", "add_rows", "cache_bytes"]
