"""The mathematics of one noise family on a domain: masses, pair loss, divergences and their slopes.

No search for a scale and no randomness here. ``support`` says where the noise lives, ``laplace`` and ``gaussian`` each
have the real and the integer version side by side, under the same method names. ``staircase`` and ``bounded`` are noise
that is the same around every true value.
"""
