"""Labels that many people gave, and none of them always rightly."""

from softcount.models.annotators.model import Annotators, SwitchWarning
from softcount.models.annotators.starts import majority_vote

__all__ = ["Annotators", "SwitchWarning", "majority_vote"]
