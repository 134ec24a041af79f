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

What is here stands in ``__init__.pyi``, and is imported when it is first used, so that
``import softcount`` costs nothing. Namespaces hold the rest: ``sc.align.Diagonal``,
``sc.labels.CoTraining``, ``sc.metrics.aer``, ``sc.text.read_conllu``.
"""

from softcount._version import __version__ as __version__
from softcount.core.lazy import attach

__getattr__, __dir__, __all__ = attach(__name__, __file__)
