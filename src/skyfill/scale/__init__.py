"""Models applied to catalogues of any size, and models learned from all of their rows."""

from skyfill.scale.driver import Run, Task, run_job
from skyfill.scale.em_steps import Steps
from skyfill.scale.inputs import Source, TableSource, open_source, read_whole
from skyfill.scale.job_folder import Done
from skyfill.scale.scoring import apply_in_memory, apply_model, check_likeness, estimate_field_prior
from skyfill.scale.train_disk import train_file
from skyfill.scale.workers import Workers, alone, cluster, threads, workers_for

__all__ = [
    "Done",
    "Run",
    "Source",
    "Steps",
    "TableSource",
    "Task",
    "Workers",
    "alone",
    "apply_in_memory",
    "apply_model",
    "check_likeness",
    "cluster",
    "estimate_field_prior",
    "open_source",
    "read_whole",
    "run_job",
    "threads",
    "train_file",
    "workers_for",
]
