"""A fitted pipeline: schema, network, scorer and provenance; saved and loaded as one safe file."""

from skyfill.model.files import ARRAYS, FACTS, load_model, save_model
from skyfill.model.pipeline import Feature, Model
from skyfill.model.training import train, train_classifier

__all__ = [
    "ARRAYS",
    "FACTS",
    "Feature",
    "Model",
    "load_model",
    "save_model",
    "train",
    "train_classifier",
]
