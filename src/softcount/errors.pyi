from softcount.annotators.estimators import SwitchWarning as SwitchWarning
from softcount.cli.streams import StreamError as StreamError
from softcount.core.errors import (
    DataError as DataError,
)
from softcount.core.errors import (
    ImpossibleItem as ImpossibleItem,
)
from softcount.core.errors import (
    LearnerError as LearnerError,
)
from softcount.core.errors import (
    MissingEntry as MissingEntry,
)
from softcount.core.errors import (
    ParameterError as ParameterError,
)
from softcount.core.errors import (
    SoftcountError as SoftcountError,
)
from softcount.core.errors import (
    StartError as StartError,
)
from softcount.core.errors import (
    StoreError as StoreError,
)
from softcount.core.errors import (
    StoryError as StoryError,
)
from softcount.core.estimate import HeavyWarning as HeavyWarning
from softcount.core.estimate import HopelessFit as HopelessFit
from softcount.core.folder import CheckpointWarning as CheckpointWarning
from softcount.core.interrupt import StoppedWarning as StoppedWarning
from softcount.core.warnings import (
    IgnoredLabelsWarning as IgnoredLabelsWarning,
)
from softcount.core.warnings import (
    ImpossibleWarning as ImpossibleWarning,
)
from softcount.core.warnings import (
    NotDistributedWarning as NotDistributedWarning,
)
from softcount.grammar.rules import GrammarWarning as GrammarWarning
from softcount.labels.propagation import UnreachedWarning as UnreachedWarning
from softcount.mixture.labelled_scores import UnlabelledWarning as UnlabelledWarning
from softcount.mixture.naive_bayes import CollapseWarning as CollapseWarning
