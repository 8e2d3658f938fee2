"""An adversary for tables: random tables that differ in one unit, random plans, every format and engine.

``cases`` draws them, ``formats`` writes them, ``twin`` runs a plan on both tables with the draws replaced by the same
ones, ``loss`` compares what entered the mechanisms with the price, ``noise`` draws for real and compares with the law
that is stated, and ``search`` looks for a case that breaks a promise, for a number of cases or for a time. ``planted``
has leaks put in on purpose, which the search has to find.
"""
