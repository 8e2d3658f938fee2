"""Runs in diffprivlib's environment: scores of its GaussianNB on given data and splits. JSON in, JSON out."""

from __future__ import annotations

import json
import sys
import time
import warnings
from importlib.metadata import version
from typing import Any

import numpy as np
from diffprivlib.models import GaussianNB  # type: ignore[import-not-found]


def main() -> None:
    warnings.simplefilter("ignore")
    question: dict[str, Any] = json.load(sys.stdin)
    X, y = np.array(question["X"]), np.array(question["y"])
    bounds = (np.array(question["lower"]), np.array(question["upper"]))
    scores, kept = [], []
    start = time.process_time()
    for chosen in question["tests"]:
        test = np.zeros(len(y), dtype=bool)
        test[chosen] = True
        model = GaussianNB(epsilon=question["epsilon"], bounds=bounds).fit(X[~test], y[~test])
        scores.append(float(model.score(X[test], y[test])))
        kept.append(bool(model.class_count_.sum() == (~test).sum()))
    spent = (time.process_time() - start) / len(scores)
    answer = {"version": version("diffprivlib"), "scikit-learn": version("scikit-learn")}
    print(json.dumps({**answer, "scores": scores, "size_published": all(kept), "cpu": spent}))


if __name__ == "__main__":
    main()
