from softcount.annotators.core import majority_vote as majority_vote
from softcount.annotators.estimators import Annotators as Annotators
from softcount.annotators.estimators import SwitchWarning as SwitchWarning
from softcount.labels.history import annotator_history as annotator_history
