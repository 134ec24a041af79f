"""What was learnt, for people to look at: in the terminal and as a page."""
