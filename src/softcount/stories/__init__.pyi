from softcount.stories.core import Derivation as Derivation
from softcount.stories.estimators import StoryModel as StoryModel
from softcount.stories.language import story as story
from softcount.stories.language import table as table
