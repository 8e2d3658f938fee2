"""The only reader of the operating system's randomness."""

from __future__ import annotations

import os

import numpy as np

from inbounds._checks import FloatArray


def uniform(shape: tuple[int, ...]) -> FloatArray:
    """Independent uniforms strictly between 0 and 1, from 52 bits each: odd multiples of 2^-53, all representable."""
    count = int(np.prod(shape, dtype=np.int64))
    bits = np.frombuffer(os.urandom(8 * count), dtype=np.uint64) >> np.uint64(12)
    return ((bits.astype(np.int64).astype(np.float64) + 0.5) * 2.0**-52).reshape(shape)
