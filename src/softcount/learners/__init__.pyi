from softcount.learners.base import Learner as Learner
from softcount.learners.base import anneal as anneal
from softcount.learners.named import (
    EM as EM,
)
from softcount.learners.named import (
    CollapsedGibbs as CollapsedGibbs,
)
from softcount.learners.named import (
    Gibbs as Gibbs,
)
from softcount.learners.named import (
    HardEM as HardEM,
)
from softcount.learners.named import (
    IncrementalEM as IncrementalEM,
)
from softcount.learners.named import (
    MonteCarloEM as MonteCarloEM,
)
from softcount.learners.named import (
    OnlineEM as OnlineEM,
)
from softcount.learners.named import (
    Spectral as Spectral,
)
from softcount.learners.named import (
    StochasticVB as StochasticVB,
)
from softcount.learners.named import (
    TemperedEM as TemperedEM,
)
from softcount.learners.named import (
    VariationalBayes as VariationalBayes,
)
from softcount.learners.schedules import (
    Batch as Batch,
)
from softcount.learners.schedules import (
    Collapsed as Collapsed,
)
from softcount.learners.schedules import (
    Incremental as Incremental,
)
from softcount.learners.schedules import (
    Squarem as Squarem,
)
from softcount.learners.schedules import (
    Stepwise as Stepwise,
)
from softcount.learners.schedules import (
    Tempered as Tempered,
)
