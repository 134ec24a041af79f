"""What went wrong, where, and what to do about it."""

from __future__ import annotations


class SoftcountError(Exception):
    """Base of all errors that softcount raises on purpose.

    The message says what is wrong and where; ``hint`` says what to do.
    """

    def __init__(self, message: str, hint: str = "") -> None:
        super().__init__(message)
        self.message = message
        self.hint = hint

    def __str__(self) -> str:
        return f"{self.message}\n  hint: {self.hint}" if self.hint else self.message


def brief(value: object, most: int = 60) -> str:
    """A value as messages show it.

    >>> brief("word" * 20, most=12)
    "'wordwordwo…"
    """
    try:
        text = repr(value)
    except ValueError:  # Python writes no whole number of more than 4,300 digits
        text = f"a number of {type(value).__name__} with thousands of digits"
    return text if len(text) <= most else text[: most - 1] + "…"


class DataError(SoftcountError, ValueError):
    """The data cannot be used: empty, damaged, or of the wrong form."""


class ImpossibleItem(DataError):
    """An item has probability zero: nothing the model allows explains it.

    ``item`` is its number in the data, if it is one of many; the message then says "item N".
    """

    def __init__(self, message: str, hint: str = "", item: int | None = None) -> None:
        super().__init__(message, hint)
        self.item = item

    def call_it(self, name: str) -> None:
        """Say ``name`` instead of "item N"."""
        self.message = self.message.replace(f"item {self.item}", name, 1)


class StartError(SoftcountError, ValueError):
    """The start values cannot be used."""


class LearnerError(SoftcountError, ValueError):
    """Parameters of an estimator or a learner do not fit together, or do not fit the model."""


class ParameterError(LearnerError, TypeError):
    """There is no parameter of this name."""


class StoryError(SoftcountError, ValueError):
    """A story does something that cannot be compiled."""


class StoreError(SoftcountError, ValueError):
    """A model file is damaged, hostile, or of another format."""


class MissingEntry(SoftcountError, KeyError):
    """A table has no such entry."""
