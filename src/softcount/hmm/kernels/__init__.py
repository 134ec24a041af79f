"""Compiled loops of `softcount.hmm`: forward–backward, best paths and draws of paths.

The same recursions stand here three times, because no one way of going through them is fast for all
chains:

`packs`       order 1, tokens in any state: many sentences side by side, so that a position is a
              product of matrices, in float64 or float32
`few_states`  order 1, tokens in a few states each (a dictionary of tags): one sentence at a time,
              over what is possible alone; expected counts and likelihoods
`lists`       order 2, and the paths of order 1 where tokens may be in few states: one sentence at
              a time, with whole rows of a table where a token may be in any state
"""
