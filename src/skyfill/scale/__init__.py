"""The same functions over batches: a model and a table in, a table out."""

from skyfill.scale.fill import Extras, features_of, fill_table
from skyfill.scale.stream import fill_file

__all__ = ["Extras", "features_of", "fill_file", "fill_table"]
