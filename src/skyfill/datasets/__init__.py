"""Public tables, fetched and verified; and a simulated field that ships as code."""

from skyfill.datasets.chandra import load_chandra
from skyfill.datasets.debosscher import load_debosscher, load_debosscher_lightcurves
from skyfill.datasets.eros import load_eros, load_eros_lightcurves
from skyfill.datasets.field.simulate import (
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
from skyfill.datasets.listing import DATASETS, dataset_files, dataset_state, load_dataset
from skyfill.datasets.macho import PAPER_FEATURES, load_macho, load_macho_variables
from skyfill.datasets.networks import load_gaussian_test, load_marks, load_network
from skyfill.datasets.sage_spec import load_sage_spec
from skyfill.datasets.store import find_file

__all__ = [
    "DATASETS",
    "PAPER_FEATURES",
    "CounterpartField",
    "Field",
    "dataset_files",
    "dataset_state",
    "find_file",
    "join_by_truth",
    "load_chandra",
    "load_dataset",
    "load_debosscher",
    "load_debosscher_lightcurves",
    "load_eros",
    "load_eros_lightcurves",
    "load_gaussian_test",
    "load_macho",
    "load_macho_variables",
    "load_marks",
    "load_network",
    "load_sage_spec",
    "simulate_crowded_field",
    "simulate_field",
    "simulate_training_set",
    "simulate_xray_field",
    "write_counterpart_field",
    "write_field",
]
