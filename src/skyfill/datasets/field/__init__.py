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
from skyfill.datasets.field.write import write_counterpart_field, write_field
from skyfill.datasets.field.xray import (
    CounterpartField,
    simulate_crowded_field,
    simulate_xray_field,
)

__all__ = [
    "CLASSES",
    "SURVEYS",
    "TRAINING_COUNTS",
    "CounterpartField",
    "Field",
    "Polygons",
    "join_by_truth",
    "simulate_crowded_field",
    "simulate_field",
    "simulate_training_set",
    "simulate_xray_field",
    "write_counterpart_field",
    "write_field",
]
