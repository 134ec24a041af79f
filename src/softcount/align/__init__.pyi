from softcount.align.decoding import symmetrise as symmetrise
from softcount.align.estimators import (
    IBM1 as IBM1,
)
from softcount.align.estimators import (
    IBM2 as IBM2,
)
from softcount.align.estimators import (
    Aligner as Aligner,
)
from softcount.align.estimators import (
    Diagonal as Diagonal,
)
from softcount.align.estimators import (
    HMMAligner as HMMAligner,
)
from softcount.align.gibbs import GibbsAligner as GibbsAligner
from softcount.align.phrases import extract_phrases as extract_phrases
from softcount.align.phrases import phrase_table as phrase_table
from softcount.align.report import (
    alignment_report as alignment_report,
)
from softcount.align.report import (
    alignment_view as alignment_view,
)
