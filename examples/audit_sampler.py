"""Can the answers of a sampler be told apart by what should say nothing: their last bits, or the time they take?

Two samplers of the same mechanism, Laplace noise kept within [0, 1] at epsilon = 1: ours, and diffprivlib's
LaplaceBoundedDomain where diffprivlib is installed (pip install diffprivlib; it is not needed otherwise).
"""

from __future__ import annotations

import warnings
from importlib.metadata import version
from typing import Any

import inbounds as ib
from inbounds.auditing import audit, audit_sampler

SENSITIVITY, EPSILON = 0.1, 1.0
# Neighbouring true values on two sides of 1/2: there the last bit of a float changes its weight.
NEAR_A_POWER_OF_TWO = (0.45, 0.55)
WALL = (0.0, 0.1)


def ours() -> ib.Laplace:
    return ib.Laplace.calibrate(ib.Interval(0, 1), sensitivity=SENSITIVITY, epsilon=EPSILON)


def diffprivlibs() -> Any:
    """One draw of diffprivlib's sampler, or None where it is not installed."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            from diffprivlib.mechanisms import LaplaceBoundedDomain  # type: ignore[import-not-found]
    except ImportError:
        return None
    mechanism = LaplaceBoundedDomain(epsilon=EPSILON, delta=0.0, sensitivity=SENSITIVITY, lower=0.0, upper=1.0)
    return mechanism.randomise


def main() -> None:
    print("What was designed, by computation:")
    print(audit(ours(), epsilon=EPSILON))
    for pair in (NEAR_A_POWER_OF_TWO, WALL):
        print("\nWhat is drawn, by ours:")
        print(audit_sampler(ours(), pair, epsilon=EPSILON))
        randomise = diffprivlibs()
        if randomise is None:
            print("\ndiffprivlib is not installed: not compared.")
            return
        print(f"\nWhat is drawn, by diffprivlib {version('diffprivlib')}:")
        print(audit_sampler(randomise, pair, epsilon=EPSILON))


if __name__ == "__main__":
    main()
