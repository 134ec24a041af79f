"""What ``softcount demo`` learns: one file a text, each with its story and what to show of it."""
