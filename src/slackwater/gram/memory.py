"""How much memory kernel rows may take."""

from __future__ import annotations

import math
import os
from contextlib import suppress
from typing import Any

import numpy as np

_SHARE = 0.5  # of the memory that is free


def cache_bytes(cache_mb: Any) -> int:
    """The bytes of a cache of so many megabytes; "auto" takes half of the free memory."""
    if cache_mb == "auto":
        return int(_SHARE * free_memory())
    number = isinstance(cache_mb, int | float | np.integer | np.floating) and not isinstance(cache_mb, bool)
    if not (number and 0.0 < cache_mb < math.inf):
        raise ValueError(f"cache_mb must be 'auto' or a positive number, got {cache_mb!r}")
    return int(cache_mb * 2**20)


def free_memory() -> float:
    """Bytes that could be had without swapping; 2 GB where the system does not tell."""
    with suppress(OSError, ValueError, IndexError), open("/proc/meminfo", encoding="ascii") as file:
        for line in file:
            if line.startswith("MemAvailable:"):
                return 1024.0 * float(line.split()[1])
    try:
        return float(os.sysconf("SC_AVPHYS_PAGES") * os.sysconf("SC_PAGE_SIZE"))
    except (AttributeError, OSError, ValueError):
        return 2.0**31
