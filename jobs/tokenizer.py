"""A checkpoint's fast tokenizer: texts to ids with code-point spans, each text once and without special tokens.

A pair is later joined as ids, so a chunk is tokenised once however many claims it meets: exact, because a pair's
two texts are tokenised apart anyway. Knows no model, window or length limit. Imports no torch.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import tokenizers

from claimscore.jobs.checkpoint import find_folder
from claimscore.jobs.errors import ModelError, reason_of
from claimscore.jobs.hidden import visible

ENCODE_ROWS = 512
"""Texts tokenised at a time: the tokenizer's own objects take some 300 bytes a token until they are read out."""


@dataclass(frozen=True, slots=True)
class Tokenizer:
    """A checkpoint's tokenizer, without padding, truncation and special tokens."""

    _tokenizer: tokenizers.Tokenizer
    cls_id: int
    sep_id: int
    unk_id: int
    special_ids: tuple[int, ...]
    """Ids that only we may place."""
    n_ids: int
    """One more than the largest id."""
    forms: np.ndarray
    """int32 (n_ids,): of each id the one that stands for its token in whatever case."""

    def encode(self, texts: pa.Array) -> pa.Table:
        """Token ids of each text, with the span that each token covers.

        `[SEP]` and its kin, written out in a text, become [UNK]: a chunk cannot end its own premise. Characters
        that show nothing are not tokenised (hidden.py).

        Returns:
            One row a text: `ids`, `starts`, `ends`, `forms`, each list<int32>; starts and ends are code points, end
            exclusive, within the text, never decreasing; a span may begin with the white space before a word. `forms` are
            equal for `Fuel` and `fuel`. A blank text gives empty lists; no texts, no rows.

        Raises:
            ValueError: a null among the texts.
        """
        if texts.null_count:
            raise ValueError(f"encode: {texts.null_count} of {len(texts)} texts are null; fill them first")
        lists: list[list[np.ndarray]] = [[], [], []]
        lengths = [0]
        for first in range(0, len(texts), ENCODE_ROWS):
            rows = [visible(text) for text in texts.slice(first, ENCODE_ROWS).to_pylist()]
            encodings = self._tokenizer.encode_batch([text for text, _ in rows], add_special_tokens=False)
            for (text, places), encoding in zip(rows, encodings, strict=True):
                spans = np.asarray(encoding.offsets, dtype=np.int32).reshape(-1, 2)
                # A normaliser that rewrites a character may report a span a little out of order; ours never are.
                spans = np.maximum.accumulate(spans.clip(0, len(text)), axis=0)
                if places is not None:
                    spans = _placed(spans, places)
                for column, values in zip(lists, (encoding.ids, spans[:, 0], spans[:, 1]), strict=True):
                    column.append(np.asarray(values, dtype=np.int32))
                lengths.append(len(spans))
        offsets = pa.array(np.cumsum(lengths), pa.int32())
        flat = [np.concatenate(column) if column else np.empty(0, np.int32) for column in lists]
        flat[0][np.isin(flat[0], self.special_ids)] = self.unk_id
        flat.append(self.forms[flat[0]])
        columns = [pa.ListArray.from_arrays(offsets, pa.array(values, pa.int32())) for values in flat]
        return pa.table(columns, names=["ids", "starts", "ends", "forms"])


def _placed(spans: np.ndarray, places: np.ndarray) -> np.ndarray:
    """Spans (T, 2) of a text without its hidden characters as spans of the text with them, by the place of each character."""
    if not len(places):
        return spans
    first, last = spans[:, 0].clip(0, len(places) - 1), (spans[:, 1] - 1).clip(0, len(places) - 1)
    starts = places[first]
    ends = np.where(spans[:, 1] > spans[:, 0], places[last] + 1, starts)
    return np.stack([starts, ends], axis=1)


def load_tokenizer(model: str) -> Tokenizer:
    """The tokenizer of a local folder or hub id, from its tokenizer.json.

    Raises:
        ModelError: no tokenizer.json, an unreadable one, or one without [CLS] and [SEP].
    """
    path = find_folder(model) / "tokenizer.json"
    if not path.is_file():
        raise ModelError(
            f"{path}: no such file, expected a fast tokenizer (spm.model alone is not read); write it once with "
            "transformers: AutoTokenizer.from_pretrained(MODEL).save_pretrained(FOLDER)"
        )
    try:
        tokenizer = tokenizers.Tokenizer.from_file(str(path))
    except Exception as err:  # the Rust library raises bare Exception
        raise ModelError(f"{path}: cannot be read: {reason_of(err)}; fetch the checkpoint again") from err
    tokenizer.no_padding()
    tokenizer.no_truncation()
    cls_id, sep_id, unk_id = (tokenizer.token_to_id(token) for token in ("[CLS]", "[SEP]", "[UNK]"))
    if cls_id is None or sep_id is None or unk_id is None:
        raise ModelError(
            f"{path}: no token [CLS], [SEP] or [UNK], expected a DeBERTa tokenizer; check the checkpoint"
        )
    added = tokenizer.get_added_tokens_decoder()
    special_ids = {cls_id, sep_id, *(i for i, token in added.items() if token.special)} - {unk_id}
    vocabulary = tokenizer.get_vocab(with_added_tokens=True)
    n_ids = 1 + max(vocabulary.values())
    forms, first = np.arange(n_ids, dtype=np.int32), dict[str, int]()
    for token, i in sorted(vocabulary.items(), key=lambda item: item[1]):
        forms[i] = first.setdefault(token.casefold(), i)
    return Tokenizer(tokenizer, cls_id, sep_id, unk_id, tuple(sorted(special_ids)), n_ids, forms)
