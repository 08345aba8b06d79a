"""Figures and the self-contained HTML page."""

from skyfill.network.summary import Summary, summarize_network
from skyfill.report.evaluations import read_evaluations
from skyfill.report.gaps import GapCounts, count_gaps
from skyfill.report.objects import Results, read_results
from skyfill.report.page import Report, build_page, write_page

__all__ = [
    "GapCounts",
    "Summary",
    "Report",
    "Results",
    "build_page",
    "count_gaps",
    "read_evaluations",
    "read_results",
    "summarize_network",
    "write_page",
]
