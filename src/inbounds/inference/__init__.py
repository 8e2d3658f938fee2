"""What a release says about the true value: confidence intervals and estimates, posteriors, and the best estimate.

``intervals`` turns tests round, ``posterior`` weighs true values by a public prior, ``remap`` is the estimate that a
denoised mechanism answers; the rest serves these. Proofs: ``docs/proofs/inference.md``, ``docs/proofs/denoising.md``.
"""

from inbounds.inference.intervals import (
    ESTIMATES,
    Views,
    balanced,
    estimate,
    interval,
    invert,
    public,
    released,
    views_of,
)

__all__ = ["ESTIMATES", "Views", "balanced", "estimate", "interval", "invert", "public", "released", "views_of"]
