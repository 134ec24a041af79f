"""The command ``softcount``: one file a command, and nothing heavy imported before it is needed."""

from __future__ import annotations


def main() -> None:
    """Run the command line."""
    from softcount.cli.app import app

    app()
