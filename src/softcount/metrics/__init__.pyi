from softcount.align.metrics import (
    AlignmentScores as AlignmentScores,
)
from softcount.align.metrics import (
    aer as aer,
)
from softcount.align.metrics import (
    align_scores as align_scores,
)
from softcount.grammar.metrics import (
    BracketScores as BracketScores,
)
from softcount.grammar.metrics import (
    balanced as balanced,
)
from softcount.grammar.metrics import (
    bracket_scores as bracket_scores,
)
from softcount.grammar.metrics import (
    left_branching as left_branching,
)
from softcount.grammar.metrics import (
    random_tree as random_tree,
)
from softcount.grammar.metrics import (
    right_branching as right_branching,
)
from softcount.hmm.metrics import (
    Confusion as Confusion,
)
from softcount.hmm.metrics import (
    InductionScores as InductionScores,
)
from softcount.hmm.metrics import (
    TagScores as TagScores,
)
from softcount.hmm.metrics import (
    confusion as confusion,
)
from softcount.hmm.metrics import (
    induction_scores as induction_scores,
)
from softcount.hmm.metrics import (
    mapping as mapping,
)
from softcount.hmm.metrics import (
    tag_scores as tag_scores,
)
from softcount.metrics.clustering import (
    Agreement as Agreement,
)
from softcount.metrics.clustering import (
    adjusted_rand as adjusted_rand,
)
from softcount.metrics.clustering import (
    agreement as agreement,
)
from softcount.metrics.clustering import (
    many_to_one as many_to_one,
)
from softcount.metrics.clustering import (
    many_to_one_map as many_to_one_map,
)
from softcount.metrics.clustering import (
    matching as matching,
)
from softcount.metrics.clustering import (
    nmi as nmi,
)
from softcount.metrics.clustering import (
    one_to_one as one_to_one,
)
from softcount.metrics.clustering import (
    purity as purity,
)
from softcount.metrics.clustering import (
    v_measure as v_measure,
)
from softcount.metrics.likelihood import (
    HeldOut as HeldOut,
)
from softcount.metrics.likelihood import (
    document_completion as document_completion,
)
from softcount.metrics.likelihood import (
    held_out as held_out,
)
from softcount.metrics.likelihood import (
    perplexity as perplexity,
)
from softcount.metrics.likelihood import (
    split as split,
)
from softcount.metrics.selection import Selection as Selection
from softcount.metrics.selection import select as select
from softcount.topics.metrics import (
    Coherence as Coherence,
)
from softcount.topics.metrics import (
    Completion as Completion,
)
from softcount.topics.metrics import (
    average_precision as average_precision,
)
from softcount.topics.metrics import (
    completion as completion,
)
from softcount.topics.metrics import (
    completion_perplexity as completion_perplexity,
)
from softcount.topics.metrics import (
    diversity as diversity,
)
from softcount.topics.metrics import (
    mean_average_precision as mean_average_precision,
)
from softcount.topics.metrics import (
    npmi as npmi,
)
from softcount.topics.metrics import (
    umass as umass,
)
