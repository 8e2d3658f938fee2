"""Our dangerous layer: from random bits to releases, exactly.

``entropy``, the only reader of the system's randomness, gives words; ``laplace`` and ``gaussian`` (the latter on the
certified tables of ``normal``, on spans also on those that ``rows`` makes) invert cdfs with the tools of ``inversion``
(chunks, buffers, error margins), and what their margins leave open goes to ``exact`` (integers). ``stairs`` and
``bounded`` do the same for noise that is the same around every true value. ``grid`` is the public grid of answers,
``finite`` draws from a given finite law, ``draws`` puts a sampler together.
"""

from inbounds.sampling.draws import Sampler, sampler

__all__ = ["Sampler", "sampler"]
