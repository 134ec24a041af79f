from softcount.topics.estimators import LDA as LDA
from softcount.topics.estimators import PLSA as PLSA
from softcount.topics.over_time import topics_over_time as topics_over_time
from softcount.topics.report import topic_report as topic_report
