"""Lists of texts as two arrays: their bytes one after the other, and where each begins."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from palio.matching.encode.columns import Ints


def packed(name: str, texts: Sequence[str | bytes]) -> dict[str, Ints]:
    """The arrays of these texts, by the names that they have in a file."""
    parts = [text.encode() if isinstance(text, str) else text for text in texts]
    offsets = np.zeros(len(parts) + 1, np.int64)
    np.cumsum([len(part) for part in parts], out=offsets[1:])
    return {
        f"{name}.offsets": offsets,
        f"{name}.blob": np.frombuffer(b"".join(parts) or b"\0", np.uint8),
    }
