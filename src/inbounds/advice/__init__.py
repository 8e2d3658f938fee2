"""Which mechanism? Exact errors of all that apply, beside the limit; a choice with its reason; epsilon for an accuracy.

``performance`` measures one mechanism, ``kinds`` says what there is to choose from, ``comparison`` measures every kind,
``recommendation`` picks one, and ``accuracy`` turns the question round.
"""

from inbounds.advice.accuracy import MEASURES, Accuracy, Tradeoff, for_accuracy, tradeoff
from inbounds.advice.comparison import Comparison, Entry, Limit, compare
from inbounds.advice.kinds import CRITERIA, KINDS, LOSSES, denoised_staircase
from inbounds.advice.performance import Figures, figures
from inbounds.advice.recommendation import Recommendation, recommend

__all__ = [
    "CRITERIA",
    "KINDS",
    "LOSSES",
    "MEASURES",
    "Accuracy",
    "Comparison",
    "Entry",
    "Figures",
    "Limit",
    "Recommendation",
    "Tradeoff",
    "compare",
    "denoised_staircase",
    "figures",
    "for_accuracy",
    "recommend",
    "tradeoff",
]
