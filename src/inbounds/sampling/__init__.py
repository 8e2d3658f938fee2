"""Random draws. ``entropy`` is the only reader of the operating system's randomness; nothing here takes a seed.

The draws invert the cdf in float64. They are in range and cryptographically random, but like every float64 sampler they
round the ideal draw, and the pattern of rounded values can depend on the true value.
"""
