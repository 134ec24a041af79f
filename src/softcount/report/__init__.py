"""Building blocks of reports, on pages and in terminals."""
