"""Each figure, table and algorithm of the paper, and what makes it: the list behind docs/paper.md.

    python docs/paper_commands.py     writes the list into that page

`tests/test_paper_commands.py` runs all of it, in this order.
"""

import re
from pathlib import Path
from typing import NamedTuple

PAGE = Path(__file__).parent / "paper.md"
PART = re.compile(r"(?<=<!-- from docs/paper_commands.py -->\n).*?(?=<!-- end -->)", re.DOTALL)
TRAINING = "skyfill-demo/training"
JOINED = f"{TRAINING}/joined.parquet"
# Twelve of the fourteen features: the public table has no others.
MACHO = (
    "macho.parquet --features CAR_sigma,Mean,CAR_tau,Std,Eta_e,Con,StetsonL,Rcs,Color,PeriodLS,"
    "Period_fit,StetsonK_AC"
)
MAGNITUDES = (
    "J_two_mass,H_two_mass,K_two_mass,m36_sage,m45_sage,m58_sage,m80_sage,U_ubvi,B_ubvi,V_ubvi,"
    "I_ubvi"
)
CURVES = "V,R,car_sigma_lc,car_tau_lc,sigma_lc,eta_lc,con_lc,stetson_l_lc,cusum_lc,color_lc"
KINDS = (
    "--survey brightness=Mean,Color --survey periods=PeriodLS,Period_fit --survey "
    "scatter=Std,StetsonL,StetsonK_AC,Con --survey time=CAR_sigma,CAR_tau,Eta_e,Rcs"
)


class Item(NamedTuple):
    """One thing of the paper.

    Attributes
    ----------
    name, what : str
        As the paper calls it, and what it shows.
    command : str
        What makes it: a command of the shell, or lines of Python with what they print.
    shows : str
        Words that the command prints, or the figure (.png) that it draws.
    quick : str
        Options with which a test need not wait for the whole: the last of two counts.
    """

    name: str
    what: str
    command: str
    shows: str = ""
    quick: str = ""


PAPER = (
    Item(
        "Algorithm 1",
        "the structure of a network despite gaps, as printed: every completed table has an order "
        "of its own, and arcs are reversed before the union. `--network k2` is the same along one "
        "order, the best.",
        f"skyfill train {MACHO} --network printed -o macho.skyfill",
        "one network of",
    ),
    Item(
        "Figure 1",
        "a joint distribution, its marginals (dashed) and a conditional (solid).",
        "skyfill report macho.skyfill --figures figures --pair StetsonL=0.8,Period_fit "
        "-o macho.html",
        "figures/pair.png",
    ),
    Item(
        "Figure 2",
        "the periodogram example. A peak is evidence of a periodic star, a bad engineering report "
        "explains it away, and a visual inspection that is passed brings it back.",
        """\
>>> from skyfill.network import DiscreteNetwork
>>> star = DiscreteNetwork(
...     ["periodic", "faulty", "report", "peak", "passed"],
...     parents=[[], [], ["faulty"], ["periodic", "faulty"], ["peak", "periodic"]],
...     tables=[
...         [0.9, 0.1],
...         [0.95, 0.05],
...         [[0.98, 0.02], [0.3, 0.7]],
...         [[[0.99, 0.01], [0.4, 0.6]], [[0.05, 0.95], [0.02, 0.98]]],
...         [[[1.0, 0.0], [1.0, 0.0]], [[0.9, 0.1], [0.2, 0.8]]],
...     ],
... )
>>> for known in ({"peak": 1}, {"peak": 1, "report": 1}, {"peak": 1, "report": 1, "passed": 1}):
...     print(star.query("periodic", known).round(2))
[0.27 0.73]
[0.78 0.22]
[0.31 0.69]
""",
    ),
    Item(
        "Figure 3",
        "five features; their joint distribution is a product of five factors.",
        """\
>>> from skyfill.network import GaussianNetwork
>>> five = GaussianNetwork(
...     ["F1", "F2", "F3", "F4", "F5"],
...     parents=[["F4"], [], ["F5"], [], ["F2", "F4"]],
...     intercepts=[0] * 5,
...     weights=[[1], [], [1], [], [1, 1]],
...     variances=[1] * 5,
... )
>>> five.arcs
(('F4', 'F1'), ('F5', 'F3'), ('F2', 'F5'), ('F4', 'F5'))
""",
    ),
    Item(
        "Figure 4",
        "counts for the score of K2: F2 has four values, and its parents F1 and F3 six pairs of "
        "values. Each pair once: the score is (3! / 4!) to the sixth power.",
        """\
>>> import numpy as np
>>> from skyfill.network import k2_score
>>> table = [[F1, F1 + F3, F3] for F1 in range(3) for F3 in range(2)]
>>> round(1 / np.exp(k2_score(table, 1, [0, 2])))
4096
""",
    ),
    Item(
        "Figure 5",
        "the network of MACHO, features of one kind in one color.",
        f"skyfill report macho.skyfill --figures figures {KINDS} -o macho.html",
        "figures/network.png",
    ),
    Item(
        "Figure 6",
        "an arc reversed: what both ends depend on becomes a parent of both, and variances change.",
        """\
>>> turned = five.reverse_arc("F4", "F5")
>>> turned.arcs, turned.variances
((('F4', 'F1'), ('F5', 'F3'), ('F2', 'F4'), ('F5', 'F4'), ('F2', 'F5')), (1.0, 1.0, 1.0, 0.5, 2.0))
""",
    ),
    Item(
        "Table 1",
        "errors of filled values on MACHO at four rates, in sample as in the paper: each method "
        "learns from the table that it fills. Without `--folds none`, from another half.",
        f"skyfill evaluate {MACHO} --log CAR_tau --log Eta_e --log PeriodLS --methods "
        "mixture,paper --folds none",
        "| nrmse, in sample |",
        "--rates 10 --repeats 1",
    ),
    Item(
        "Table 2",
        "missing values of SAGE and 2MASS.",
        f"skyfill inspect {JOINED}",
        "J_two_mass",
    ),
    Item(
        "Table 3",
        "missing values of UBVI.",
        f"skyfill inspect {TRAINING}/ubvi.ecsv --schema {TRAINING}/ubvi.toml",
        "missing",
    ),
    Item(
        "Table 4",
        "objects per class.",
        f"skyfill inspect {JOINED} --label class_truth",
        "class_truth  objects",
    ),
    Item(
        "Table 5",
        "precision, recall and F of each class in ten folds, gaps filled by independent mixtures "
        "and by the network.",
        f"skyfill evaluate {JOINED} --label class_truth --features {MAGNITUDES} --methods "
        "mixture,paper",
        "| QSO |",
        "--folds 2",
    ),
    Item(
        "Table 6",
        "quasars with and without the other catalogues.",
        f"skyfill evaluate {JOINED} --label class_truth --features {CURVES},{MAGNITUDES} "
        "--without sage,two_mass,ubvi --methods paper",
        "all objects, with and without the survey:",
        "--folds 2",
    ),
    Item(
        "The second claim",
        "objects with gaps teach more than any complete subset: than the rows without a gap, or "
        "the columns without gaps.",
        f"skyfill evaluate {JOINED} --label class_truth --features {MAGNITUDES} --methods "
        "complete-rows,complete-columns,paper",
        "objects without a gap:",
        "--folds 2",
    ),
    Item(
        "Appendix A",
        "inference by arc reversal: F5 from F1, F3 and F4.",
        """\
>>> answer = five.query(of=["F5"], given=["F1", "F3", "F4"])
>>> abs(answer.weights.round(4)), answer.cov.round(4)
(array([[0.    , 0.6667, 0.3333]]), array([[0.6667]]))
""",
    ),
    Item(
        "Appendix B",
        "the score of a structure, of the ten cases of Cooper & Herskovits (1992), who give "
        "2.23e-9, and the structure that K2 finds.",
        """\
>>> from skyfill.network import k2_search
>>> cases = [[*map(int, row)] for row in "100 111 001 111 000 011 111 000 111 000".split()]
>>> families = [(0, []), (1, [0]), (2, [1])]
>>> print(f"{np.exp(sum(k2_score(cases, *family) for family in families)):.2e}")
2.23e-09
>>> k2_search(cases, order=[0, 1, 2])
((), (0,), (1,))
""",
    ),
)


def is_python(item: Item) -> bool:
    """Whether an item is made by lines of Python."""
    return item.command.startswith(">>>")


def section() -> str:
    """Write the list as the page holds it."""
    parts = []
    for item in PAPER:
        kind = "python" if is_python(item) else "bash"
        end = "\n" if kind == "python" else ""
        lines = item.command.strip()
        parts.append(f"**{item.name}**: {item.what}\n\n```{kind}\n{lines}\n{end}```\n")
    return "\n" + "\n".join(parts) + "\n"


if __name__ == "__main__":
    PAGE.write_text(PART.sub(lambda _: section(), PAGE.read_text()))
