from softcount.text.archive import Archive as Archive
from softcount.text.bitext import (
    Bitext as Bitext,
)
from softcount.text.bitext import (
    as_bitext as as_bitext,
)
from softcount.text.bitext import (
    read_bitext as read_bitext,
)
from softcount.text.conllu import read_conllu as read_conllu
from softcount.text.corpora import (
    build_corpus as build_corpus,
)
from softcount.text.corpora import (
    in_parts as in_parts,
)
from softcount.text.corpora import (
    open_corpus as open_corpus,
)
from softcount.text.sequences import read_sequences as read_sequences
from softcount.text.tagged import (
    read_tag_dictionary as read_tag_dictionary,
)
from softcount.text.tagged import (
    read_tagged as read_tagged,
)
from softcount.text.treebank import read_trees as read_trees
from softcount.text.trees import Tree as Tree
from softcount.text.trees import tree as tree
