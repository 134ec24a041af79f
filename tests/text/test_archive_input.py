"""Archives: what cannot be put into one is named."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from softcount.core.errors import DataError
from softcount.text.archive import Archive

BAD = [
    ("one text", {}, "the data are one text"),
    ([], {}, "there are no documents"),
    ({"a.txt": []}, {}, "there are no documents"),
    ([b"bytes"], {}, "the first document is b'bytes'"),
    ([7], {}, "the first document is 7"),
    (["a", 7], {}, "document 1 is 7, while others are texts"),
    ({"f": ["a", ["b"]]}, {}, "f:2 is ['b'], while others are texts"),
    ([["a"], "b"], {}, "document 1 is 'b', while others are lists of words"),
    ([["a"], ["b", 7]], {}, "document 1 has 7 among its words"),
    (["", "?!"], {}, "no words are left"),
    (["a"], {"stop_words": "a"}, "stop_words is a single text"),
    (["a"], {"min_count": 0}, "min_count=0"),
    (["a"], {"max_share": 1.5}, "max_share=1.5"),
    (["a"], {"max_words": 0}, "max_words=0"),
    (["a"], {"shuffle": -1}, "shuffle=-1"),
    (["a"], {"vocabulary": ["a"]}, "vocabulary names the columns of counts"),
    ([np.eye(2), -np.eye(2)], {}, "document 2 has a count of -1"),
    ([np.eye(2) * np.nan], {}, "document 0 has a count of nan"),
    ([np.array([[1.0], [np.inf]])], {}, "document 1 has a count of inf"),
    ([np.eye(2), np.eye(3)], {}, "a block of 3 words, while others have 2"),
    ([np.eye(2), "text"], {}, "after 2 documents comes 'text'"),
    ([np.eye(2)], {"vocabulary": ["a"]}, "a block of 2 words, while others have 1"),
    ([np.eye(2)], {"vocabulary": ["a", "a"]}, "a word twice"),
    ([np.eye(2)], {"vocabulary": ["a", 1]}, "has 1 among its words"),
    ([np.eye(2)], {"min_count": 2}, "columns without names"),
]


@pytest.mark.parametrize(("documents", "options", "message"), BAD, ids=[m for *_, m in BAD])
def test_bad_input_is_named(
    tmp_path: Path, documents: Any, options: dict[str, Any], message: str
) -> None:
    with pytest.raises(DataError, match=re.escape(message)) as caught:
        Archive.build(documents, tmp_path / "a", **options)
    assert caught.value.hint
    assert list(tmp_path.iterdir()) == []
