"""From one domain to another: a classifier trained where labels are, for where they are not."""
