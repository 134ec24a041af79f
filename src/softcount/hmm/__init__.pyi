from softcount.hmm.estimators import HMM as HMM
from softcount.hmm.estimators import GaussianHMM as GaussianHMM
from softcount.hmm.report import tagging_report as tagging_report
