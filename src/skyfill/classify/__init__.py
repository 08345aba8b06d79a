"""Class probabilities for incomplete objects, and the measurement to take next."""

from typing import Any

from skyfill.first_use import load_public

# Scoring needs no scikit-learn, and only the classifier that learns loads it: on first use.
_PUBLIC = {
    "CatalogClassifier": "skyfill.classify.classifier",
    "ClassTree": "skyfill.classify.class_tree",
    "FlatForest": "skyfill.classify.forest",
    "Magnitudes": "skyfill.classify.photometric_ratio",
    "MixturePhotometry": "skyfill.classify.photometry",
    "Scorer": "skyfill.classify.scorer",
    "Scores": "skyfill.classify.scorer",
    "estimate_prior": "skyfill.classify.prior",
    "expected_gains": "skyfill.classify.next_measurement",
    "shift_prior": "skyfill.classify.prior",
}

__all__ = [*_PUBLIC]  # noqa: PLE0604 - every key is a string


def __getattr__(name: str) -> Any:
    return load_public(__name__, _PUBLIC, name)


def __dir__() -> list[str]:
    return __all__
