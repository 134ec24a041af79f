from softcount.annotators.core import majority_vote as majority_vote
from softcount.annotators.estimators import Annotators as Annotators
from softcount.annotators.estimators import SwitchWarning as SwitchWarning
from softcount.annotators.history import annotator_history as annotator_history
from softcount.annotators.rules import Pattern as Pattern
from softcount.annotators.rules import apply_rules as apply_rules
from softcount.annotators.rules import load_rules as load_rules
