"""Table 1 of Chen and Hale's bounded Gaussian mechanism, and what exact calibration makes of it.

A query with answers in [0, 10] x [1, 9] whose change vector is at most (4, 2), of length sqrt(20). Each row
is a variance σ² before truncation: less is better, and every row guarantees the same ε.
"""

from __future__ import annotations

import inbounds as ib

EPSILONS = [0.1, 0.5, 1.0, 1.5, 2.0, 2.5, 3.0]
PUBLISHED = [857.5, 170.3, 84.3, 55.8, 41.5, 32.9, 27.2]

BOX = ib.Box([0, 1], [10, 9])
LENGTH = ib.L2(20**0.5)
EACH = [4, 2]


def variances(sensitivity: ib.L2 | list[int], method: str) -> list[float]:
    mechanisms = (
        ib.Gaussian.calibrate(BOX, sensitivity=sensitivity, epsilon=epsilon, method=method) for epsilon in EPSILONS
    )
    return [mechanism.sigma**2 for mechanism in mechanisms]


def main() -> None:
    rows = {
        "generalised Gaussian (Liu)": variances(EACH, "liu"),
        "Chen and Hale, as published": PUBLISHED,
        "Chen and Hale, recomputed": variances(LENGTH, "paper"),
        "exact, length sqrt(20)": variances(LENGTH, "exact"),
        "exact, per coordinate (4, 2)": variances(EACH, "exact"),
    }
    print("σ² on [0, 10] x [1, 9]")
    print(f"{'ε':<30}" + "".join(f"{epsilon:>9.1f}" for epsilon in EPSILONS))
    for name, row in rows.items():
        print(f"{name:<30}" + "".join(f"{variance:>9.2f}" for variance in row))


if __name__ == "__main__":
    main()
