"""``python -m softcount`` is the command ``softcount``."""

from softcount.cli import main

if __name__ == "__main__":
    main()
