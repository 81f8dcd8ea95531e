"""Rows of the kernel matrix on demand."""

from slackwater.gram.gram import Gram, Kept
from slackwater.gram.memory import cache_bytes

__all__ = ["Gram", "Kept", "cache_bytes"]
