"""From data as users have them to flat arrays."""
