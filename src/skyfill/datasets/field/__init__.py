"""A simulated field of the Large Magellanic Cloud that ships as code."""

from skyfill.datasets.field.observing import SURVEYS
from skyfill.datasets.field.polygons import Polygons
from skyfill.datasets.field.population import CLASSES
from skyfill.datasets.field.simulate import (
    TRAINING_COUNTS,
    Field,
    join_by_truth,
    simulate_field,
    simulate_training_set,
)
from skyfill.datasets.field.write import write_field

__all__ = [
    "CLASSES",
    "SURVEYS",
    "TRAINING_COUNTS",
    "Field",
    "Polygons",
    "join_by_truth",
    "simulate_field",
    "simulate_training_set",
    "write_field",
]
