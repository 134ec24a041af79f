"""Learning from a handful of labels without a generative story."""
