"""The kernels of numbers: plain loops over flat arrays, nothing else."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from palio.matching.jit import borrowing


@borrowing
def powers(x: Any, y: Any, x_step: int, y_step: int, found: Any) -> None:
    """x to the y, with the C library's pow, as Python has it; a step of 0 is that of a constant."""
    for i in range(len(found)):
        base, exponent = x[i * x_step], y[i * y_step]
        if exponent != exponent or (math.isinf(exponent) and abs(base) == 1.0):
            found[i] = np.nan  # as in Java
        else:
            found[i] = math.pow(base, exponent)
