"""What the checks of several papers compute with: arrays of numbers, and nodes to integrate over [0, 1]."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

__all__ = ["FloatArray", "legendre"]

FloatArray = npt.NDArray[np.float64]


def legendre(nodes: int, panels: int) -> tuple[FloatArray, FloatArray]:
    """Composite Gauss-Legendre nodes and weights on [0, 1]."""
    x, w = np.polynomial.legendre.leggauss(nodes)
    starts = np.arange(panels, dtype=np.float64)[:, None]
    return ((starts + (x + 1.0) / 2.0) / panels).ravel(), np.tile(w / 2.0 / panels, panels)
