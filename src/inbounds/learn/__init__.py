"""Estimators for scikit-learn that learn with differential privacy. Needs the extra ``learn``.

* :class:`GaussianNB`: naive Bayes with normal features, pure epsilon.
"""

try:
    import sklearn  # type: ignore[import-untyped]  # noqa: F401
except ImportError as error:
    from inbounds.errors import MissingExtra

    raise MissingExtra(
        "inbounds.learn: scikit-learn must be installed; it is not. Install the extra: pip install 'inbounds[learn]'."
    ) from error

from inbounds.learn.naive_bayes import Account, GaussianNB, Spending

__all__ = ["Account", "GaussianNB", "Spending"]
