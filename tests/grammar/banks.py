"""A small grammar, sentences and trees for tests of commands and pages."""

from __future__ import annotations

RULES = """# a toy
S -> NP VP
NP -> DT NN | 'she' | NP PP
DT -> 'the' | 'a'
NN -> 'dog' | 'cat'
VP -> VB | VB NP | VP PP
VB -> 'sees' | 'sleeps'
PP -> 'with' NP
"""
SENTENCES = [
    "she sees the dog",
    "",
    "the cat sleeps",
    "she sees a dog with a cat",
    "a dog sees the cat",
]
TEXT = "\n".join(SENTENCES) + "\n"
TREES = [
    "(S (NP-SBJ (PRP she)) (VP (VB sees) (NP (DT the) (NN dog))))",
    "",
    "(S (NP (DT the) (NN cat)) (VP (VB sleeps) (NP (-NONE- *))))",
    "(S (NP (PRP she)) (VP (VB sees) (NP (NP (DT a) (NN dog))"
    " (PP (IN with) (NP (DT a) (NN cat))))))",
    "(S (NP (DT a) (NN dog)) (VP (VB sees) (NP (DT the) (NN cat))))",
]
BANK = "\n".join(TREES) + "\n"
