"""The parts that pages and terminals share."""
