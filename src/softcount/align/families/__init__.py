"""Families of `softcount.align`."""
