"""What the parts of a scorer must fulfil before a model file is trusted; else ValueError."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from skyfill.classify.class_calibration import KINDS, Calibration
from skyfill.classify.prior import Profiles
from skyfill.classify.views import Array

# Bounds of what a model file may hold: beyond them probabilities would overflow.
MIN_SHARE, MAX_SLOPE = 1e-12, 1e6


def check_classes(
    classes: Sequence[str], calibration: Calibration, shares: Array, prior: Array
) -> None:
    """Check the names of the classes and what there is one number for each of."""
    C, parts = len(classes), (calibration.slopes, calibration.bias, shares, prior)
    if C < 2 or len(set(classes)) != C or any(part.shape != (C,) for part in parts):
        raise ValueError("classes, calibration and shares are inconsistent")
    for each in (shares, prior):
        if not (each > MIN_SHARE).all() or not abs(each.sum() - 1) <= 1e-6:
            raise ValueError("the shares of the classes must be positive, with sum 1")
    if not all((np.abs(part) <= MAX_SLOPE).all() for part in parts):
        raise ValueError("calibration or shares are out of bounds")
    # Odds are against one class, whose slope is 0.
    positive = int((calibration.slopes > 0).sum()) + (calibration.kind == "odds")
    if positive != C or (calibration.slopes < 0).any():
        raise ValueError("the slopes of the calibration must be positive")
    if calibration.kind not in KINDS:
        raise ValueError(f"no calibration {calibration.kind!r}")


def check_profiles(profiles: Profiles | None, n_classes: int) -> None:
    """Check the mean probabilities of each class."""
    if profiles is None:
        return
    if any(part.shape != (n_classes, n_classes) for part in profiles):
        raise ValueError("the profiles of the classes have the wrong shape")
    if not all(((part >= 0) & (part <= 1)).all() for part in profiles):
        raise ValueError("the profiles of the classes must be probabilities and their errors")
    if not (np.abs(profiles.mean.sum(axis=1) - 1) <= 1e-6).all():
        raise ValueError("the profiles of the classes must add up to 1")


def check_contrasts(contrasts: Array, p: int) -> None:
    """Check pairs of columns out of `p`."""
    if contrasts.ndim != 2 or contrasts.shape[1] != 4:
        raise ValueError("the contrasts have the wrong shape")
    columns = contrasts[:, [0, 2]]
    if not ((columns >= 0) & (columns < p) & (columns == np.floor(columns))).all():
        raise ValueError("a contrast refers to columns that do not exist")
