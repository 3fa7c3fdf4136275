"""SentencePiece models as tokenizer.json: the same pieces, scores and normalisation, and whether the ids are equal.

BPE: SentencePiece joins the adjacent pair whose union has the best score, whichever two pieces make it up, so every
split of a piece into two pieces is a merge, ordered by score. Only one split of a piece can ever stand in a text: what
lies within it was joined as if it were alone. Unigram: the same search over the same scores, but in other precision.
Where the ids may differ, the model itself is kept to encode; the tokenizer.json then gives names, ids and text.
"""

from __future__ import annotations

import re
from collections import Counter
from typing import Any

from tokenizers import AddedToken, Regex, decoders, models, normalizers, pre_tokenizers
from tokenizers import Tokenizer as Backend

from dataprep.errors import ConfigError
from dataprep.tokens.conversion_probes import PROBES
from dataprep.tokens.sentencepiece_library import open_processor, sentencepiece
from dataprep.tokens.source import DocumentMarks, Source

_SPACE = "\u2581"
_NORMAL, _UNKNOWN, _CONTROL, _USER, _UNUSED, _BYTE = range(1, 7)
_UNIGRAM, _BPE = 1, 2
# Below any path over a text, so that text never becomes a control or byte piece.
_NEVER = -1e6
# What SentencePiece takes off the score of a user-defined symbol, whose every byte scores as the best piece.
_USER_PENALTY = 0.1
# Runs of one character are where pieces of equal score meet; proven up to this multiple of the longest piece.
_RUNS = 4


def convert_sentencepiece(data: bytes, where: str) -> Source:
    """Turn a serialised SentencePiece model (BPE or Unigram) into a tokenizer.json; keep the model if it must encode.

    It must where a tokenizer.json expresses the model only nearly, and where ids of the built-in probe texts differ.
    Raises ConfigError if the file is no such model or a tokenizer.json cannot even decode its ids; EnvironmentFailure
    if `sentencepiece` is missing.
    """
    model = _parse(data, where)
    reference = open_processor(data, where)
    _refuse_inexpressible(model, where)
    backend = _backend(model)
    why = _why_inexact(model) or _difference(backend, reference, model)
    kind = "BPE" if model.trainer_spec.model_type == _BPE else "Unigram"
    return Source(
        kind=f"SentencePiece {kind}",
        json=backend.to_str().encode(),
        marks=_marks(model),
        notes=(f"{why}, so SentencePiece itself encodes",) if why else (),
        model=data if why else None,
    )


def is_sentencepiece(data: bytes) -> bool:
    """Whether the bytes may be a serialised model: its first field is a piece, a message of a few bytes."""
    return len(data) > 4 and data[0] == data[2] == 0x0A and 0 < data[3] <= data[1] - 2


def _parse(data: bytes, where: str) -> Any:
    _, messages = sentencepiece(where)
    model = messages.ModelProto()
    try:
        model.ParseFromString(data)
    except Exception as error:  # protobuf raises a class of its own
        raise ConfigError(f"not a SentencePiece model: {error}", where=where) from error
    return model


def _refuse_inexpressible(model: Any, where: str) -> None:
    trainer = model.trainer_spec
    what = None
    if trainer.model_type not in (_UNIGRAM, _BPE):
        what = "only BPE and Unigram models of SentencePiece can be used, not WORD and CHAR"
    elif trainer.treat_whitespace_as_suffix or not model.normalizer_spec.escape_whitespaces:
        what = "SentencePiece models that write white space as a suffix, or as it is, cannot be converted"
    if what:
        raise ConfigError(what, where=where, mend="give the model's tokenizer.json instead, if there is one")


def _why_inexact(model: Any) -> str | None:
    """Why a tokenizer.json cannot give the model's ids for every text, None if it should."""
    kinds, normalizer = {piece.type for piece in model.pieces}, model.normalizer_spec
    if model.trainer_spec.model_type == _UNIGRAM:
        return "a Unigram model decides near ties by rounding in single precision"
    if normalizer.precompiled_charsmap:
        return f"its character map {normalizer.name!r} composes combining marks"
    if _UNUSED in kinds:
        return "it has UNUSED pieces"
    if _USER in kinds:
        return "it finds user-defined symbols before it normalises"
    return None


def _user_score(model: Any, piece: str) -> float:
    best = max(one.score for one in model.pieces if one.type == _NORMAL)
    return float(len(piece.encode()) * best - _USER_PENALTY)


def _backend(model: Any) -> Backend:
    is_bpe = model.trainer_spec.model_type == _BPE
    backend = Backend(_bpe(model) if is_bpe else _unigram(model))
    backend.normalizer = _normalizer(model)
    if _spaces_lead(model):
        backend.pre_tokenizer = pre_tokenizers.Split(Regex(f"{_SPACE}+[^{_SPACE}]*"), "isolated")
    backend.decoder = _decoder(model)
    user = [piece.piece for piece in model.pieces if piece.type == _USER] if is_bpe else []
    backend.add_tokens([AddedToken(name, normalized=True, special=False) for name in user])
    controls = [piece.piece for piece in model.pieces if piece.type in (_CONTROL, _UNKNOWN)]
    backend.add_special_tokens([AddedToken(name, normalized=False, special=True) for name in controls])
    return backend


def _bpe(model: Any) -> models.BPE:
    vocabulary = {piece.piece: token for token, piece in enumerate(model.pieces)}
    normal = {piece.piece for piece in model.pieces if piece.type == _NORMAL}
    ranked = sorted((-piece.score, token) for token, piece in enumerate(model.pieces) if piece.type == _NORMAL)
    merges = [
        (name[:cut], name[cut:])
        for name in (model.pieces[token].piece for _, token in ranked)
        for cut in range(1, len(name))
        if name[:cut] in normal and name[cut:] in normal
    ]
    fallback = bool(model.trainer_spec.byte_fallback)
    unknown = next(piece.piece for piece in model.pieces if piece.type == _UNKNOWN)
    return models.BPE(vocabulary, merges, unk_token=unknown, fuse_unk=True, byte_fallback=fallback)


def _unigram(model: Any) -> models.Unigram:
    def score(piece: Any) -> float:
        if piece.type == _USER:
            return _user_score(model, piece.piece)
        return float(piece.score) if piece.type == _NORMAL else _NEVER

    unknown = next(token for token, piece in enumerate(model.pieces) if piece.type == _UNKNOWN)
    scored = [(piece.piece, score(piece)) for piece in model.pieces]
    return models.Unigram(scored, unk_id=unknown, byte_fallback=bool(model.trainer_spec.byte_fallback))


def _normalizer(model: Any) -> normalizers.Normalizer:
    spec = model.normalizer_spec
    steps: list[normalizers.Normalizer] = []
    if spec.precompiled_charsmap:
        steps.append(normalizers.Precompiled(spec.precompiled_charsmap))
    if spec.remove_extra_whitespaces:
        steps.append(normalizers.Replace(Regex(r"\A +| +(?= )"), ""))
    if spec.add_dummy_prefix:
        steps.append(normalizers.Prepend(_SPACE))
    steps.append(normalizers.Replace(" ", _SPACE))
    if spec.remove_extra_whitespaces:
        steps.append(normalizers.Replace(Regex(rf"{_SPACE}+\z"), ""))
    return normalizers.Sequence(steps)


def _decoder(model: Any) -> decoders.Decoder:
    steps = [decoders.Replace(_SPACE, " "), decoders.ByteFallback(), decoders.Fuse()]
    if model.normalizer_spec.add_dummy_prefix:
        steps.append(decoders.Strip(" ", 1, 0))
    return decoders.Sequence(steps)


def _spaces_lead(model: Any) -> bool:
    """Whether no piece crosses from a character to a space: then no merge or path does, and words stand alone."""
    names = [piece.piece for piece in model.pieces if piece.type in (_NORMAL, _USER)]
    crossing = re.compile(f"[^{_SPACE}]{_SPACE}")
    return _SPACE in names and not any(crossing.search(name) for name in names)


def _marks(model: Any) -> DocumentMarks:
    def named(token: int, name: str) -> str | None:
        return name if token >= 0 else None

    spec = model.trainer_spec
    return DocumentMarks(named(spec.eos_id, spec.eos_piece), None, named(spec.pad_id, spec.pad_piece))


def _difference(backend: Backend, reference: Any, model: Any) -> str | None:
    """The first probe text whose ids are not SentencePiece's own, said as a reason; None if there is none."""
    opened = Backend.from_str(backend.to_str())
    opened.encode_special_tokens = True
    for text in (*PROBES, *_own_probes(model)):
        if opened.encode(text, add_special_tokens=False).ids != reference.encode(text):
            return f"a tokenizer.json encodes {text[:40]!r} otherwise"
    return None


def _own_probes(model: Any) -> list[str]:
    """Every piece as text, in batches of neighbours, and runs of the characters whose pieces share a score."""
    names = [piece.piece.replace(_SPACE, " ") for piece in model.pieces]
    together = [" ".join(names[start : start + 64]) for start in range(0, len(names), 64)]
    user = [f"a{piece.piece} b" for piece in model.pieces if piece.type == _USER]
    return [*together, *user, *_tied_runs(model)]


def _tied_runs(model: Any) -> list[str]:
    counts = Counter(piece.score for piece in model.pieces if piece.type == _NORMAL and len(piece.piece) > 1)
    tied = [p.piece for p in model.pieces if p.type == _NORMAL and len(p.piece) > 1 and counts[p.score] > 1]
    longest: dict[str, int] = {}
    for name in tied:
        for character in set(name.replace(_SPACE, " ")):
            longest[character] = max(longest.get(character, 0), len(name))
    runs = [character * count for character, most in longest.items() for count in range(1, _RUNS * most)]
    return [f"a{run}b" for run in runs]
