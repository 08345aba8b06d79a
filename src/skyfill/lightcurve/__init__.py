"""Light curves in, one row of variability features per object out."""

from skyfill.lightcurve.collection import About, LightCurves, collect
from skyfill.lightcurve.curve_columns import CurveColumns
from skyfill.lightcurve.curve_files import Opened, open_light_curves
from skyfill.lightcurve.extract import empty_table, extract_features, stream_features
from skyfill.lightcurve.layout import Request, from_table
from skyfill.lightcurve.registry import FEATURES, CurveFeature, FeatureSet, choose_features

__all__ = [
    "FEATURES",
    "About",
    "CurveColumns",
    "CurveFeature",
    "FeatureSet",
    "LightCurves",
    "Opened",
    "Request",
    "choose_features",
    "collect",
    "empty_table",
    "extract_features",
    "from_table",
    "open_light_curves",
    "stream_features",
]
