"""softcount learns hidden structure from text that nobody labelled.

Write how the data could have come about (a story), choose a learner, fit:

>>> import softcount as sc
>>> which, flip = sc.table("which"), sc.table("flip")
>>> @sc.story
... def coins(tosses):
...     for z in "AB":
...         yield which[z], *(flip[z, x] for x in tosses)
>>> model = sc.StoryModel(coins).fit(["HHH", "TTT", "HHH", "TTT"])
>>> model.verdict_.good
True

The names below are imported when they are first used, so that ``import softcount`` costs nothing.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from softcount._version import __version__

if TYPE_CHECKING:
    from softcount.adapt.adversarial import AdversarialNetwork
    from softcount.adapt.base import domain_folds
    from softcount.adapt.comparison import compare
    from softcount.adapt.denoising import DenoisingProjection
    from softcount.adapt.pivots import PivotProjection
    from softcount.adapt.report import adaptation_report
    from softcount.adapt.supervised import (
        EasyAdapt,
        FeatureCopies,
        Interpolation,
        Merge,
        PredictionFeature,
        SourceOnly,
        SourcePrior,
        TargetOnly,
        Weighted,
    )
    from softcount.align import IBM1, IBM2, Aligner, Diagonal, GibbsAligner, HMMAligner
    from softcount.align.decoding import symmetrise
    from softcount.align.phrases import phrase_table, phrases
    from softcount.align.report import alignment_report, alignment_view
    from softcount.annotators import Annotators, SwitchWarning, majority_vote
    from softcount.annotators.history import annotator_history
    from softcount.checks import check_model
    from softcount.corpus.archive import Archive
    from softcount.corpus.bitext import Bitext, bitext, read_bitext
    from softcount.corpus.conllu import read_conllu
    from softcount.corpus.sequences import read_sequences
    from softcount.corpus.tag_dictionary import read_tag_dictionary
    from softcount.corpus.tagged import read_tagged
    from softcount.corpus.treebank import read_trees
    from softcount.corpus.trees import Tree, tree
    from softcount.engines import Local
    from softcount.errors import (
        DataError,
        ImpossibleItem,
        LearnerError,
        MissingEntry,
        SoftcountError,
        StartError,
        StoreError,
        StoryError,
    )
    from softcount.estimate import Estimate, HeavyWarning, HopelessFit
    from softcount.families import (
        Categorical,
        Gaussian,
        LogLinear,
        SparseCategorical,
        StickBreaking,
    )
    from softcount.grammar import PCFG
    from softcount.grammar.report import grammar_report
    from softcount.hmm import HMM
    from softcount.hmm.estimators import GaussianHMM
    from softcount.hmm.report import tagging_report
    from softcount.interrupt import StoppedWarning
    from softcount.labels.cotraining import CoTraining
    from softcount.labels.propagation import LabelPropagation, UnreachedWarning
    from softcount.labels.report import labelling_report
    from softcount.labels.self_training import SelfTraining
    from softcount.labels.yarowsky import DecisionList, Rule, Yarowsky, collocations, read_rules
    from softcount.learners import (
        EM,
        Batch,
        CollapsedGibbs,
        Gibbs,
        HardEM,
        Incremental,
        IncrementalEM,
        Learner,
        MonteCarloEM,
        OnlineEM,
        Spectral,
        Squarem,
        Stepwise,
        StochasticVB,
        TemperedEM,
        VariationalBayes,
        anneal,
    )
    from softcount.metrics import Agreement, HeldOut, Selection, agreement, held_out, select
    from softcount.mixture import (
        CollapseWarning,
        DirichletProcessGaussianMixture,
        DirichletProcessMixture,
        GaussianMixture,
        KMeans,
        MultinomialMixture,
        NaiveBayes,
        NaiveBayesCV,
        SemiSupervisedKFold,
        SoftKMeans,
        UnlabelledWarning,
        labelled_scorer,
    )
    from softcount.models.ignored import IgnoredLabelsWarning
    from softcount.models.possible import ImpossibleWarning
    from softcount.senses import Sense, SenseInducer
    from softcount.store import load
    from softcount.stories import StoryModel, story, table
    from softcount.theory import decompose
    from softcount.topics import LDA, PLSA
    from softcount.topics.report import topic_report, topics_over_time
    from softcount.translate import Translator
    from softcount.translate.language_model import LanguageModel
    from softcount.types import Fit, State, Stats, Trace
    from softcount.verdict import Verdict

_HOME = {
    "softcount.adapt.adversarial": ("AdversarialNetwork",),
    "softcount.adapt.base": ("domain_folds",),
    "softcount.adapt.comparison": ("compare",),
    "softcount.adapt.denoising": ("DenoisingProjection",),
    "softcount.adapt.pivots": ("PivotProjection",),
    "softcount.adapt.report": ("adaptation_report",),
    "softcount.adapt.supervised": (
        "EasyAdapt",
        "FeatureCopies",
        "Interpolation",
        "Merge",
        "PredictionFeature",
        "SourceOnly",
        "SourcePrior",
        "TargetOnly",
        "Weighted",
    ),
    "softcount.align": (
        "Aligner",
        "Diagonal",
        "GibbsAligner",
        "HMMAligner",
        "IBM1",
        "IBM2",
    ),
    "softcount.align.decoding": ("symmetrise",),
    "softcount.align.phrases": (
        "phrase_table",
        "phrases",
    ),
    "softcount.align.report": (
        "alignment_report",
        "alignment_view",
    ),
    "softcount.annotators": (
        "Annotators",
        "SwitchWarning",
        "majority_vote",
    ),
    "softcount.annotators.history": ("annotator_history",),
    "softcount.checks": ("check_model",),
    "softcount.corpus.archive": ("Archive",),
    "softcount.corpus.bitext": (
        "Bitext",
        "bitext",
        "read_bitext",
    ),
    "softcount.corpus.conllu": ("read_conllu",),
    "softcount.corpus.sequences": ("read_sequences",),
    "softcount.corpus.tag_dictionary": ("read_tag_dictionary",),
    "softcount.corpus.tagged": ("read_tagged",),
    "softcount.corpus.treebank": ("read_trees",),
    "softcount.corpus.trees": (
        "Tree",
        "tree",
    ),
    "softcount.engines": ("Local",),
    "softcount.errors": (
        "DataError",
        "ImpossibleItem",
        "LearnerError",
        "MissingEntry",
        "SoftcountError",
        "StartError",
        "StoreError",
        "StoryError",
    ),
    "softcount.estimate": (
        "Estimate",
        "HeavyWarning",
        "HopelessFit",
    ),
    "softcount.families": (
        "Categorical",
        "Gaussian",
        "LogLinear",
        "SparseCategorical",
        "StickBreaking",
    ),
    "softcount.grammar": ("PCFG",),
    "softcount.grammar.report": ("grammar_report",),
    "softcount.hmm": ("HMM",),
    "softcount.hmm.estimators": ("GaussianHMM",),
    "softcount.hmm.report": ("tagging_report",),
    "softcount.interrupt": ("StoppedWarning",),
    "softcount.labels.cotraining": ("CoTraining",),
    "softcount.labels.propagation": (
        "LabelPropagation",
        "UnreachedWarning",
    ),
    "softcount.labels.report": ("labelling_report",),
    "softcount.labels.self_training": ("SelfTraining",),
    "softcount.labels.yarowsky": (
        "DecisionList",
        "Rule",
        "Yarowsky",
        "collocations",
        "read_rules",
    ),
    "softcount.learners": (
        "Batch",
        "CollapsedGibbs",
        "EM",
        "Gibbs",
        "HardEM",
        "Incremental",
        "IncrementalEM",
        "Learner",
        "MonteCarloEM",
        "OnlineEM",
        "Spectral",
        "Squarem",
        "Stepwise",
        "StochasticVB",
        "TemperedEM",
        "VariationalBayes",
        "anneal",
    ),
    "softcount.metrics": (
        "Agreement",
        "HeldOut",
        "Selection",
        "agreement",
        "held_out",
        "select",
    ),
    "softcount.mixture": (
        "CollapseWarning",
        "DirichletProcessGaussianMixture",
        "DirichletProcessMixture",
        "GaussianMixture",
        "KMeans",
        "MultinomialMixture",
        "NaiveBayes",
        "NaiveBayesCV",
        "SemiSupervisedKFold",
        "SoftKMeans",
        "UnlabelledWarning",
        "labelled_scorer",
    ),
    "softcount.models.ignored": ("IgnoredLabelsWarning",),
    "softcount.models.possible": ("ImpossibleWarning",),
    "softcount.senses": (
        "Sense",
        "SenseInducer",
    ),
    "softcount.store": ("load",),
    "softcount.stories": (
        "StoryModel",
        "story",
        "table",
    ),
    "softcount.theory": ("decompose",),
    "softcount.topics": (
        "LDA",
        "PLSA",
    ),
    "softcount.topics.report": (
        "topic_report",
        "topics_over_time",
    ),
    "softcount.translate": ("Translator",),
    "softcount.translate.language_model": ("LanguageModel",),
    "softcount.types": (
        "Fit",
        "State",
        "Stats",
        "Trace",
    ),
    "softcount.verdict": ("Verdict",),
}
_WHERE = {name: module for module, names in _HOME.items() for name in names}

__all__ = [
    "EM",
    "HMM",
    "IBM1",
    "IBM2",
    "LDA",
    "PCFG",
    "PLSA",
    "AdversarialNetwork",
    "Agreement",
    "Aligner",
    "Annotators",
    "Archive",
    "Batch",
    "Bitext",
    "Categorical",
    "CoTraining",
    "CollapseWarning",
    "CollapsedGibbs",
    "DataError",
    "DecisionList",
    "DenoisingProjection",
    "Diagonal",
    "DirichletProcessGaussianMixture",
    "DirichletProcessMixture",
    "EasyAdapt",
    "Estimate",
    "FeatureCopies",
    "Fit",
    "Gaussian",
    "GaussianHMM",
    "GaussianMixture",
    "Gibbs",
    "GibbsAligner",
    "HMMAligner",
    "HardEM",
    "HeavyWarning",
    "HeldOut",
    "HopelessFit",
    "IgnoredLabelsWarning",
    "ImpossibleItem",
    "ImpossibleWarning",
    "Incremental",
    "IncrementalEM",
    "Interpolation",
    "KMeans",
    "LabelPropagation",
    "LanguageModel",
    "Learner",
    "LearnerError",
    "Local",
    "LogLinear",
    "Merge",
    "MissingEntry",
    "MonteCarloEM",
    "MultinomialMixture",
    "NaiveBayes",
    "NaiveBayesCV",
    "OnlineEM",
    "PivotProjection",
    "PredictionFeature",
    "Rule",
    "Selection",
    "SelfTraining",
    "SemiSupervisedKFold",
    "Sense",
    "SenseInducer",
    "SoftKMeans",
    "SoftcountError",
    "SourceOnly",
    "SourcePrior",
    "SparseCategorical",
    "Spectral",
    "Squarem",
    "StartError",
    "State",
    "Stats",
    "Stepwise",
    "StickBreaking",
    "StochasticVB",
    "StoppedWarning",
    "StoreError",
    "StoryError",
    "StoryModel",
    "SwitchWarning",
    "TargetOnly",
    "TemperedEM",
    "Trace",
    "Translator",
    "Tree",
    "UnlabelledWarning",
    "UnreachedWarning",
    "VariationalBayes",
    "Verdict",
    "Weighted",
    "Yarowsky",
    "__version__",
    "adaptation_report",
    "agreement",
    "alignment_report",
    "alignment_view",
    "anneal",
    "annotator_history",
    "bitext",
    "check_model",
    "collocations",
    "compare",
    "decompose",
    "domain_folds",
    "grammar_report",
    "held_out",
    "labelled_scorer",
    "labelling_report",
    "load",
    "majority_vote",
    "phrase_table",
    "phrases",
    "read_bitext",
    "read_conllu",
    "read_rules",
    "read_sequences",
    "read_tag_dictionary",
    "read_tagged",
    "read_trees",
    "select",
    "story",
    "symmetrise",
    "table",
    "tagging_report",
    "topic_report",
    "topics_over_time",
    "tree",
]


def __getattr__(name: str) -> Any:
    if name == "evaluate":
        value: Any = import_module("softcount.metrics")
    elif name in _WHERE:
        value = getattr(import_module(_WHERE[name]), name)
    else:
        raise AttributeError(f"module 'softcount' has no attribute {name!r}")
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*__all__, "evaluate"})
