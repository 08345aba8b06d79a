"""All tables that skyfill can load, by name."""

from collections.abc import Callable

from skyfill.catalog import Table
from skyfill.datasets.chandra import load_chandra
from skyfill.datasets.debosscher import load_debosscher, load_debosscher_lightcurves
from skyfill.datasets.eros import load_eros, load_eros_lightcurves
from skyfill.datasets.field.simulate import join_by_truth, simulate_training_set
from skyfill.datasets.macho import load_macho, load_macho_variables
from skyfill.datasets.networks import load_gaussian_test, load_marks
from skyfill.datasets.sage_spec import load_sage_spec
from skyfill.datasets.store import places, registry
from skyfill.errors import CatalogError


def load_simulated() -> Table:
    """Simulate the training set of the paper, and join its catalogues by the true identities."""
    return join_by_truth(simulate_training_set())


# Loader and description, by name.
DATASETS: dict[str, tuple[Callable[[], Table], str]] = {
    "macho": (load_macho, "MACHO training set: 6060 light curves, 35 features, 8 classes"),
    "macho-variables": (load_macho_variables, "MACHO variables of the LMC: 21,474 stars"),
    "eros": (load_eros, "EROS-1 variables of the LMC: 3641 stars, 4 classes"),
    "eros-lightcurves": (load_eros_lightcurves, "their light curves in two bands, as lists"),
    "chandra": (load_chandra, "Chandra x Gaia x 2MASS x WISE: 3126 sources, 8 classes, gaps"),
    "sage-spec": (load_sage_spec, "Spitzer SAGE-Spec, LMC: 792 sources, 25 classes, gaps"),
    "debosscher": (load_debosscher, "labels of 1392 variable stars, 26 classes"),
    "debosscher-lightcurves": (load_debosscher_lightcurves, "their 263,608 measurements"),
    "gaussian-test": (load_gaussian_test, "5000 draws from a known Gaussian network"),
    "marks": (load_marks, "marks of 88 students in five subjects"),
    "simulated": (load_simulated, "simulated LMC training set: 1833 objects, 7 classes, gaps"),
}


def load_dataset(name: str) -> Table:
    """Load a table by its name in `DATASETS`.

    Examples
    --------
    >>> len(load_dataset("simulated"))
    1833
    """
    return DATASETS[_known(name)][0]()


def dataset_files(name: str) -> tuple[str, ...]:
    """List the published files of a table, as keys of the registry.

    Examples
    --------
    >>> dataset_files("sage-spec")
    ('sage_spec/jones_2017_ascii.txt',)
    """
    return tuple(e.path for e in registry().values() if e.dataset == _known(name))


def dataset_state(name: str) -> str:
    """Return whether a table is ``here``, must be fetched (``download``) or is ``absent``.

    Examples
    --------
    >>> dataset_state("simulated")
    'here'
    """
    lost = [p for p in dataset_files(name) if not any(place.is_file() for place in places(p))]
    if not lost:
        return "here"
    return "download" if all(registry()[path].address for path in lost) else "absent"


def _known(name: str) -> str:
    if name not in DATASETS:
        raise CatalogError(f"no data set {name!r}; there are {', '.join(DATASETS)}")
    return name
