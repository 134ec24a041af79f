from softcount.instances.estimators import MultipleInstance as MultipleInstance
from softcount.labels.asking import Questions as Questions
from softcount.labels.asking import ask as ask
from softcount.labels.cotraining import CoTraining as CoTraining
from softcount.labels.propagation import LabelPropagation as LabelPropagation
from softcount.labels.report import labelling_report as labelling_report
from softcount.labels.self_training import SelfTraining as SelfTraining
from softcount.labels.yarowsky import (
    DecisionList as DecisionList,
)
from softcount.labels.yarowsky import (
    Rule as Rule,
)
from softcount.labels.yarowsky import (
    Yarowsky as Yarowsky,
)
from softcount.labels.yarowsky import (
    collocations as collocations,
)
from softcount.labels.yarowsky import (
    read_rules as read_rules,
)
