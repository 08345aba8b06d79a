"""The same functions over batches: a model and a table in, a table out."""

from skyfill.scale.classify import classify_file, with_field_prior
from skyfill.scale.counting import count_rows
from skyfill.scale.fill import fill_file
from skyfill.scale.ledger import Done
from skyfill.scale.stream import Target, stream_file, write_parts
from skyfill.scale.train import Refined, train_file

__all__ = [
    "Done",
    "Refined",
    "Target",
    "classify_file",
    "count_rows",
    "fill_file",
    "stream_file",
    "train_file",
    "with_field_prior",
    "write_parts",
]
