"""What users hold: mechanisms, each a file of its own; ``base`` has what all of them can do."""

from inbounds.mechanism.additive import Additive, Gaussian, Laplace
from inbounds.mechanism.base import Mechanism
from inbounds.mechanism.bounded import BoundedLaplace
from inbounds.mechanism.denoised import Denoised
from inbounds.mechanism.staircase import Staircase
from inbounds.mechanism.table import Table

__all__ = ["Additive", "BoundedLaplace", "Denoised", "Gaussian", "Laplace", "Mechanism", "Staircase", "Table"]
