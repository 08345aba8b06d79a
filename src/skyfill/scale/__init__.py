"""The same functions over batches: a model and a table in, a table out."""

from skyfill.scale.classify import Scoring, classify_file, classify_table, with_field_prior
from skyfill.scale.counting import count_rows
from skyfill.scale.fill import Extras, features_of, fill_file, fill_table
from skyfill.scale.ledger import Done
from skyfill.scale.stream import Target, stream_file, write_parts
from skyfill.scale.train import Refined, train_file

__all__ = [
    "Done",
    "Extras",
    "Refined",
    "Scoring",
    "Target",
    "classify_file",
    "classify_table",
    "count_rows",
    "features_of",
    "fill_file",
    "fill_table",
    "stream_file",
    "train_file",
    "with_field_prior",
    "write_parts",
]
