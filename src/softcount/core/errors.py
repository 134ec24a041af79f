"""Exceptions: each says what is wrong and where, with a hint what to do about it."""

from __future__ import annotations


class SoftcountError(Exception):
    """Base class of all errors that softcount raises deliberately.

    The message says what is wrong and where; ``hint`` says what to do.
    """

    def __init__(self, message: str, hint: str = "") -> None:
        super().__init__(message)
        self.message = message
        self.hint = hint

    def __str__(self) -> str:
        return f"{self.message}\n  hint: {self.hint}" if self.hint else self.message


def brief(value: object, most: int = 60) -> str:
    """Format a value for a message, cut to ``most`` characters.

    >>> brief("word" * 20, most=12)
    "'wordwordwo…"
    """
    try:
        text = repr(value)
    except ValueError:  # Python refuses to print integers of more than 4,300 digits
        text = f"a number of {type(value).__name__} with thousands of digits"
    return text if len(text) <= most else text[: most - 1] + "…"


class DataError(SoftcountError, ValueError):
    """The data cannot be used: they are empty, damaged, or of the wrong form."""


class ImpossibleItem(DataError):
    """An item has probability zero under the model.

    ``item`` is its number in the data, if it is one of many; the message then says "item N".
    """

    def __init__(self, message: str, hint: str = "", item: int | None = None) -> None:
        super().__init__(message, hint)
        self.item = item

    def call_it(self, name: str) -> None:
        """Replace "item N" in the message by ``name``."""
        self.message = self.message.replace(f"item {self.item}", name, 1)


class StartError(SoftcountError, ValueError):
    """The initial parameters cannot be used."""


class LearnerError(SoftcountError, ValueError):
    """Parameters of an estimator or a learner contradict one another, or do not suit the model."""


class ParameterError(LearnerError, TypeError):
    """The estimator or learner has no parameter of this name."""


class StoryError(SoftcountError, ValueError):
    """A story does something that cannot be compiled."""


class StoreError(SoftcountError, ValueError):
    """A model file is damaged, malicious, or of another format."""


class MissingEntry(SoftcountError, KeyError):
    """A table has no such entry."""
