from softcount import (
    adapt as adapt,
)
from softcount import (
    align as align,
)
from softcount import (
    annotators as annotators,
)
from softcount import (
    errors as errors,
)
from softcount import (
    families as families,
)
from softcount import (
    grammar as grammar,
)
from softcount import (
    hmm as hmm,
)
from softcount import (
    labels as labels,
)
from softcount import (
    learners as learners,
)
from softcount import (
    metrics as metrics,
)
from softcount import (
    mixture as mixture,
)
from softcount import (
    text as text,
)
from softcount import (
    topics as topics,
)
from softcount import (
    translate as translate,
)
from softcount._version import __version__ as __version__
from softcount.align import Aligner as Aligner
from softcount.annotators import Annotators as Annotators
from softcount.core.errors import (
    DataError as DataError,
)
from softcount.core.errors import (
    LearnerError as LearnerError,
)
from softcount.core.errors import (
    SoftcountError as SoftcountError,
)
from softcount.core.folder import resume as resume
from softcount.core.laws import check_model as check_model
from softcount.core.model import Model as Model
from softcount.core.store import load as load
from softcount.core.theory import decompose as decompose
from softcount.core.verdict import Verdict as Verdict
from softcount.engines import Dask as Dask
from softcount.engines import Local as Local
from softcount.engines import Processes as Processes
from softcount.grammar import PCFG as PCFG
from softcount.hmm import HMM as HMM
from softcount.hmm import GaussianHMM as GaussianHMM
from softcount.learners import (
    EM as EM,
)
from softcount.learners import (
    CollapsedGibbs as CollapsedGibbs,
)
from softcount.learners import (
    Gibbs as Gibbs,
)
from softcount.learners import (
    HardEM as HardEM,
)
from softcount.learners import (
    IncrementalEM as IncrementalEM,
)
from softcount.learners import (
    Learner as Learner,
)
from softcount.learners import (
    MonteCarloEM as MonteCarloEM,
)
from softcount.learners import (
    OnlineEM as OnlineEM,
)
from softcount.learners import (
    Spectral as Spectral,
)
from softcount.learners import (
    StochasticVB as StochasticVB,
)
from softcount.learners import (
    TemperedEM as TemperedEM,
)
from softcount.learners import (
    VariationalBayes as VariationalBayes,
)
from softcount.metrics import select as select
from softcount.mixture import (
    DirichletProcessGaussianMixture as DirichletProcessGaussianMixture,
)
from softcount.mixture import (
    DirichletProcessMixture as DirichletProcessMixture,
)
from softcount.mixture import (
    GaussianMixture as GaussianMixture,
)
from softcount.mixture import (
    KMeans as KMeans,
)
from softcount.mixture import (
    MultinomialMixture as MultinomialMixture,
)
from softcount.mixture import (
    NaiveBayes as NaiveBayes,
)
from softcount.mixture import (
    NaiveBayesCV as NaiveBayesCV,
)
from softcount.mixture import (
    SoftKMeans as SoftKMeans,
)
from softcount.senses import SenseInducer as SenseInducer
from softcount.stories import StoryModel as StoryModel
from softcount.stories import story as story
from softcount.stories import table as table
from softcount.topics import LDA as LDA
from softcount.topics import PLSA as PLSA
from softcount.translate import Translator as Translator
