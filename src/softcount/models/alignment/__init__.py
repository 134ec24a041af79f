"""Word alignment: which source word each target word comes from."""
