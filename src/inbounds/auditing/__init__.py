"""Prove or refute a privacy claim: numerically for mechanisms and families of densities, statistically for samplers.

:func:`audit` is in ``numerical.py``, with ``lines.py`` and ``vectors.py`` for Laplace and Gaussian noise, ``laws.py``
for every other mechanism, and ``family.py``, ``densities.py``, ``certificate.py`` and ``quadrature.py`` for any family
of densities; :func:`audit_sampler` is in ``statistical.py``; ``report.py`` holds what they return, and ``pairs.py`` the
pairs of true values that are tried.
"""

from inbounds.auditing.family import LocationFamily
from inbounds.auditing.numerical import audit
from inbounds.auditing.report import Audit, Check, SamplerAudit, Witness
from inbounds.auditing.statistical import audit_sampler

__all__ = ["Audit", "Check", "LocationFamily", "SamplerAudit", "Witness", "audit", "audit_sampler"]
