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
    from softcount.adapt.baselines import Merge, SourceOnly, TargetOnly, Weighted
    from softcount.adapt.comparison import compare
    from softcount.adapt.denoising import DenoisingProjection
    from softcount.adapt.easyadapt import EasyAdapt, FeatureCopies
    from softcount.adapt.folds import domain_folds
    from softcount.adapt.interpolation import Interpolation
    from softcount.adapt.pivots import PivotProjection
    from softcount.adapt.prediction import PredictionFeature
    from softcount.adapt.prior import SourcePrior
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
    from softcount.evaluate import Agreement, HeldOut, Selection, agreement, held_out, select
    from softcount.families import (
        Categorical,
        Gaussian,
        LogLinear,
        SparseCategorical,
        StickBreaking,
    )
    from softcount.interrupt import StoppedWarning
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
    from softcount.models.alignment import IBM1, IBM2, Aligner, Diagonal, GibbsAligner, HMMAligner
    from softcount.models.alignment.phrases import phrase_table, phrases
    from softcount.models.alignment.symmetrise import symmetrise
    from softcount.models.annotators import Annotators, SwitchWarning, majority_vote
    from softcount.models.grammar import PCFG
    from softcount.models.ignored import IgnoredLabelsWarning
    from softcount.models.language import LanguageModel
    from softcount.models.mixture import (
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
    from softcount.models.possible import ImpossibleWarning
    from softcount.models.senses import Sense, SenseInducer
    from softcount.models.sequences import HMM
    from softcount.models.sequences.vectors import GaussianHMM
    from softcount.models.story import StoryModel, story, table
    from softcount.models.topics import LDA, PLSA
    from softcount.models.translate import Translator
    from softcount.show.adaptation import adaptation_report
    from softcount.show.alignment import alignment_report
    from softcount.show.alignment_text import alignment_view
    from softcount.show.grammar import grammar_report
    from softcount.show.labelling import labelling_report
    from softcount.show.over_time import topics_over_time
    from softcount.show.sequences import tagging_report
    from softcount.show.topics import topic_report
    from softcount.store import load
    from softcount.theory import decompose
    from softcount.types import Fit, State, Stats, Trace
    from softcount.verdict import Verdict
    from softcount.weak.annotators import annotator_history
    from softcount.weak.collocations import collocations
    from softcount.weak.cotraining import CoTraining
    from softcount.weak.decision_list import DecisionList, Rule
    from softcount.weak.propagation import LabelPropagation, UnreachedWarning
    from softcount.weak.seeds import read_rules
    from softcount.weak.self_training import SelfTraining
    from softcount.weak.yarowsky import Yarowsky

_HOME = {
    "softcount.adapt.adversarial": ("AdversarialNetwork",),
    "softcount.adapt.baselines": ("Merge", "SourceOnly", "TargetOnly", "Weighted"),
    "softcount.adapt.comparison": ("compare",),
    "softcount.adapt.denoising": ("DenoisingProjection",),
    "softcount.adapt.easyadapt": ("EasyAdapt", "FeatureCopies"),
    "softcount.adapt.folds": ("domain_folds",),
    "softcount.adapt.interpolation": ("Interpolation",),
    "softcount.adapt.pivots": ("PivotProjection",),
    "softcount.adapt.prediction": ("PredictionFeature",),
    "softcount.adapt.prior": ("SourcePrior",),
    "softcount.models.translate": ("Translator",),
    "softcount.models.ignored": ("IgnoredLabelsWarning",),
    "softcount.models.language": ("LanguageModel",),
    "softcount.models.alignment.symmetrise": ("symmetrise",),
    "softcount.models.alignment.phrases": (
        "phrase_table",
        "phrases",
    ),
    "softcount.models.alignment": (
        "IBM1",
        "IBM2",
        "Aligner",
        "Diagonal",
        "GibbsAligner",
        "HMMAligner",
    ),
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
    "softcount.corpus.trees": ("Tree", "tree"),
    "softcount.models.mixture": (
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
    "softcount.models.annotators": ("Annotators", "SwitchWarning", "majority_vote"),
    "softcount.weak.annotators": ("annotator_history",),
    "softcount.models.grammar": ("PCFG",),
    "softcount.models.possible": ("ImpossibleWarning",),
    "softcount.models.senses": ("Sense", "SenseInducer"),
    "softcount.models.sequences": ("HMM",),
    "softcount.models.sequences.vectors": ("GaussianHMM",),
    "softcount.models.story": ("StoryModel", "story", "table"),
    "softcount.models.topics": ("LDA", "PLSA"),
    "softcount.show.adaptation": ("adaptation_report",),
    "softcount.show.over_time": ("topics_over_time",),
    "softcount.show.alignment": ("alignment_report",),
    "softcount.show.alignment_text": ("alignment_view",),
    "softcount.show.grammar": ("grammar_report",),
    "softcount.show.labelling": ("labelling_report",),
    "softcount.show.sequences": ("tagging_report",),
    "softcount.show.topics": ("topic_report",),
    "softcount.learners": (
        "EM",
        "Batch",
        "CollapsedGibbs",
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
    "softcount.engines": ("Local",),
    "softcount.families": (
        "Categorical",
        "Gaussian",
        "LogLinear",
        "SparseCategorical",
        "StickBreaking",
    ),
    "softcount.theory": ("decompose",),
    "softcount.checks": ("check_model",),
    "softcount.corpus.archive": ("Archive",),
    "softcount.estimate": ("Estimate", "HeavyWarning", "HopelessFit"),
    "softcount.evaluate": (
        "Agreement",
        "HeldOut",
        "Selection",
        "agreement",
        "held_out",
        "select",
    ),
    "softcount.interrupt": ("StoppedWarning",),
    "softcount.store": ("load",),
    "softcount.types": ("Fit", "State", "Stats", "Trace"),
    "softcount.verdict": ("Verdict",),
    "softcount.weak.collocations": ("collocations",),
    "softcount.weak.decision_list": ("DecisionList", "Rule"),
    "softcount.weak.seeds": ("read_rules",),
    "softcount.weak.yarowsky": ("Yarowsky",),
    "softcount.weak.propagation": ("LabelPropagation", "UnreachedWarning"),
    "softcount.weak.cotraining": ("CoTraining",),
    "softcount.weak.self_training": ("SelfTraining",),
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
        value: Any = import_module("softcount.evaluate")
    elif name in _WHERE:
        value = getattr(import_module(_WHERE[name]), name)
    else:
        raise AttributeError(f"module 'softcount' has no attribute {name!r}")
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*__all__, "evaluate"})
