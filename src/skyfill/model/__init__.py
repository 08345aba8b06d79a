"""A fitted pipeline: schema, network, scorer and provenance; saved and loaded as one safe file."""

from skyfill.model.applying import Scoring, classify_table, likeness_of, scorer_and_cells, scorer_of
from skyfill.model.cells import cells_of, features_of, summarize_cells
from skyfill.model.class_training import add_classes, train_classifier
from skyfill.model.description import describe_model
from skyfill.model.files import load_model, save_model
from skyfill.model.filling import Filling, fill_table
from skyfill.model.measured import before_filling
from skyfill.model.pipeline import Detection, Feature, Model, absent_features
from skyfill.model.training import Refined, refine, train
from skyfill.model.weighing import classify_associations, fill_associations
from skyfill.model_archive import ARRAYS, FACTS

__all__ = [
    "ARRAYS",
    "FACTS",
    "Detection",
    "Feature",
    "Filling",
    "Model",
    "Refined",
    "Scoring",
    "absent_features",
    "add_classes",
    "before_filling",
    "cells_of",
    "classify_associations",
    "classify_table",
    "describe_model",
    "features_of",
    "fill_associations",
    "fill_table",
    "scorer_and_cells",
    "likeness_of",
    "load_model",
    "refine",
    "save_model",
    "scorer_of",
    "summarize_cells",
    "train",
    "train_classifier",
]
