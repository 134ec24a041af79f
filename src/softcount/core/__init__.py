"""The loop and what it stands on: types, models, learning, files, laws."""
