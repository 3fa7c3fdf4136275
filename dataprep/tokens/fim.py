"""Fill in the middle: some documents are cut in three before they are encoded, and their middle part is put last.

The method is that of Bavarian et al. 2022, arXiv 2207.14255. PSM stands as `<pre> prefix <suf> suffix <mid> middle`,
SPM, in the form that lets a model be trained on both, as `<pre> <suf> suffix <mid> prefix middle`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import xxhash

from dataprep.tokens.config import FimConfig
from dataprep.tokens.encoding import TokenBatch
from dataprep.tokens.generator import below, fractions, splitmix64
from dataprep.tokens.tokenizer import Tokenizer

Mask = npt.NDArray[np.bool_]
Places = npt.NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class Cuts:
    """What becomes of each document: whether it is rearranged, whether the suffix comes first, and where it is cut.

    chosen, suffix_first: bool [documents]; first, second: int64 [documents] code points before the two cuts.
    """

    chosen: Mask
    suffix_first: Mask
    first: Places
    second: Places

    @property
    def first_parts(self) -> Places:
        """int64 [documents]: which of the parts is the first of each document."""
        counts = np.where(self.chosen, 3, 1)
        begins: Places = np.cumsum(counts) - counts
        return begins


def draw_cuts(texts: Sequence[str], hashes: Sequence[bytes], allowed: Mask, fim: FimConfig, seed: int) -> Cuts:
    """Draw the documents to rearrange among the `allowed` and their cuts, by `seed` and the hash of each text alone.

    Both cuts are uniform over all places between characters, the two ends included, as in the paper: any part may be
    empty. hashes: xxh3-128 digests of the texts.
    """
    states = (xxhash.xxh3_64_intdigest(b"fim:" + digest, seed) for digest in hashes)
    choice, order, *cuts = splitmix64(np.fromiter(states, np.uint64, len(texts)), 4).T
    lengths = np.fromiter(map(len, texts), np.int64, len(texts))
    places = np.sort([below(cut, lengths + 1) for cut in cuts], axis=0)
    chosen = allowed & (lengths >= fim.min_chars) & (fractions(choice) < fim.rate)
    return Cuts(chosen, chosen & (fractions(order) < fim.spm_rate), places[0], places[1])


def encode_with_fim(tokenizer: Tokenizer, texts: Sequence[str], cuts: Cuts) -> TokenBatch:
    """Encode documents as `Tokenizer.encode` does, but the chosen ones in three parts with their tokens before them."""
    return joined_parts(tokenizer.encode_plain(parts_of(texts, cuts)), cuts, tokenizer)


def parts_of(texts: Sequence[str], cuts: Cuts) -> list[str]:
    """The texts to encode, in the order of their tokens: three of each chosen document, the others as they are."""
    parts: list[str] = []
    for text, chosen, suffix_first, first, second in zip(
        texts, cuts.chosen, cuts.suffix_first, cuts.first, cuts.second, strict=True
    ):
        if not chosen:
            parts.append(text)
        elif suffix_first:
            parts += (text[second:], text[:first], text[first:second])
        else:
            parts += (text[:first], text[second:], text[first:second])
    return parts


def joined_parts(plain: TokenBatch, cuts: Cuts, tokenizer: Tokenizer) -> TokenBatch:
    """Put the parts of each document together, `plain` their tokens: bos, tokens before the parts, eos among them."""
    fim = tokenizer.fim
    if fim is None:
        raise ValueError("this tokenizer was loaded without tokens to fill in the middle")
    begins = cuts.first_parts
    ends = begins + np.where(cuts.chosen, 3, 1)
    lead = 0 if tokenizer.bos_id is None else 1
    heads, tails = np.zeros((2, len(plain)), np.int64)
    heads[begins] = lead
    psm, spm = begins[cuts.chosen & ~cuts.suffix_first], begins[cuts.suffix_first]
    # Special tokens directly before a part, bos aside: PSM has one before each, SPM two before its first.
    for first, counts in ((psm, (1, 1, 1)), (spm, (2, 1, 0))):
        for part, count in enumerate(counts):
            heads[first + part] += count
    tails[ends - 1] = 1
    offsets = _offsets(heads + np.diff(plain.offsets) + tails)
    texts = offsets[:-1] + heads
    marks = [
        (offsets[ends] - 1, tokenizer.eos_id),
        (texts[psm] - 1, fim.prefix),
        (texts[psm + 1] - 1, fim.suffix),
        (texts[psm + 2] - 1, fim.middle),
        (texts[spm] - 2, fim.prefix),
        (texts[spm] - 1, fim.suffix),
        (texts[spm + 1] - 1, fim.middle),
    ]
    if tokenizer.bos_id is not None:
        marks.append((offsets[begins], tokenizer.bos_id))
    ids = np.empty(offsets[-1], np.int32)
    is_text = np.ones(len(ids), np.bool_)
    for places, token in marks:
        ids[places] = token
        is_text[places] = False
    ids[is_text] = plain.ids
    return TokenBatch(ids, offsets[np.insert(ends, 0, 0)])


def _offsets(lengths: Places) -> Places:
    offsets = np.zeros(len(lengths) + 1, np.int64)
    np.cumsum(lengths, out=offsets[1:])
    return offsets
