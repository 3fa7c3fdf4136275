"""SentencePiece models as tokenizer.json: the same pieces, scores and normalisation, proven equal or refused.

BPE: SentencePiece joins the adjacent pair whose union has the best score, whichever two pieces make it up, so every
split of a piece into two pieces is a merge, ordered by score. Only one split of a piece can ever stand in a text: what
lies within it was joined as if it were alone. Unigram: the same Viterbi search over the same scores.
"""

from __future__ import annotations

import re
from collections import Counter
from types import ModuleType
from typing import Any

from tokenizers import AddedToken, Regex, decoders, models, normalizers, pre_tokenizers
from tokenizers import Tokenizer as Backend

from dataprep.errors import ConfigError, EnvironmentFailure
from dataprep.tokens.conversion_probes import PROBES
from dataprep.tokens.source import DocumentMarks, Source

_SPACE = "\u2581"
_NORMAL, _UNKNOWN, _CONTROL, _USER, _UNUSED, _BYTE = range(1, 7)
_UNIGRAM, _BPE = 1, 2
# Below any path over a text, so that text never becomes a control or byte piece.
_NEVER = -1e6
# SentencePiece's kUnkPenalty, and the share of a byte it takes off a user-defined symbol.
_UNKNOWN_PENALTY, _USER_PENALTY = 10.0, 0.1
# Runs of one character are where pieces of equal score meet; proven up to this multiple of the longest piece.
_RUNS = 4
_ACCEPT = "use a BPE model with normalization_rule_name=identity, or accept some other ids: tokenizer: {inexact: true}"
_MEND = "give the model's tokenizer.json instead, if there is one"


def convert_sentencepiece(data: bytes, where: str, *, inexact: bool) -> Source:
    """Turn a serialised SentencePiece model (BPE or Unigram) into a tokenizer.json.

    `inexact` takes models that the format expresses only nearly: those with a character map, which tokenizer.json
    applies grapheme by grapheme (it differs where combining marks follow a letter), and Unigram, where SentencePiece
    sums scores over the whole text in single precision, so that near ties fall as its rounding has it. Raises
    ConfigError if the file is no such model, if the format cannot express it, or if ids of the built-in probe texts
    differ from SentencePiece's own; EnvironmentFailure if `sentencepiece` is missing.
    """
    library, proto = _library(where)
    model = proto.ModelProto()
    try:
        model.ParseFromString(data)
        reference = library.SentencePieceProcessor(model_proto=data)
    except Exception as error:  # the library raises RuntimeError, protobuf a class of its own
        raise ConfigError(f"not a SentencePiece model: {error}", where=where) from error
    _refuse_inexpressible(model, where, inexact)
    backend = _backend(model, where)
    kind = "BPE" if model.trainer_spec.model_type == _BPE else "Unigram"
    differing = _differing(backend, reference, model)
    if differing and not _why_inexact(model):
        what = f"the converted SentencePiece model encodes {differing[0][:40]!r} otherwise than SentencePiece does"
        raise ConfigError(what, where=where, mend=_MEND)
    notes = (f"{len(differing)} probe texts encode otherwise than SentencePiece does",) if differing else ()
    return Source(f"SentencePiece {kind}", backend.to_str().encode(), _marks(model), notes=notes)


def is_sentencepiece(data: bytes) -> bool:
    """Whether the bytes may be a serialised model: its first field is a piece, a message of a few bytes."""
    return len(data) > 4 and data[0] == data[2] == 0x0A and 0 < data[3] <= data[1] - 2


def _library(where: str) -> tuple[ModuleType, ModuleType]:
    try:
        import sentencepiece
        from sentencepiece import sentencepiece_model_pb2
    except ImportError as error:
        mend = 'pip install "dataprep[sentencepiece]"'
        raise EnvironmentFailure(f"a SentencePiece model needs a library: {error}", where=where, mend=mend) from error
    return sentencepiece, sentencepiece_model_pb2


def _refuse_inexpressible(model: Any, where: str, inexact: bool) -> None:
    def refuse(what: str, mend: str = _MEND) -> None:
        raise ConfigError(what, where=where, mend=mend)

    trainer, normalizer = model.trainer_spec, model.normalizer_spec
    kinds = Counter(piece.type for piece in model.pieces)
    if trainer.model_type not in (_UNIGRAM, _BPE):
        refuse("only BPE and Unigram models of SentencePiece can be used, not WORD and CHAR")
    if trainer.treat_whitespace_as_suffix or not normalizer.escape_whitespaces:
        refuse("SentencePiece models that write white space as a suffix, or as it is, cannot be converted")
    if kinds[_UNUSED]:
        refuse(f"{kinds[_UNUSED]} pieces of the SentencePiece model are UNUSED, which tokenizer.json cannot express")
    if len({piece.piece for piece in model.pieces}) != len(model.pieces):
        refuse("two pieces of the SentencePiece model are spelled alike")
    if (why := _why_inexact(model)) and not inexact:
        refuse(f"the SentencePiece model cannot be converted exactly: {why}", _ACCEPT)
    if trainer.model_type == _UNIGRAM:
        _refuse_uncovered(model, refuse)


def _why_inexact(model: Any) -> str | None:
    if model.trainer_spec.model_type == _UNIGRAM:
        return "a Unigram model decides near ties by rounding in single precision"
    if model.normalizer_spec.precompiled_charsmap:
        return f"its character map {model.normalizer_spec.name!r} composes combining marks"
    return None


def _refuse_uncovered(model: Any, refuse: Any) -> None:
    """An unknown character must never compete with a longer piece, for its score is lost beside _NEVER."""
    normal = [piece for piece in model.pieces if piece.type == _NORMAL]
    single = {piece.piece for piece in normal if len(piece.piece) == 1}
    if any(not single.issuperset(piece.piece) for piece in normal):
        refuse("a character of the Unigram model stands in longer pieces only")
    least = min(piece.score for piece in normal) - _UNKNOWN_PENALTY
    for piece in model.pieces:
        if piece.type == _USER and not single.issuperset(piece.piece) and _user_score(model, piece.piece) < least:
            refuse(
                f"the Unigram model's user-defined symbol {piece.piece!r} is too long to win over unknown characters"
            )


def _user_score(model: Any, piece: str) -> float:
    best = max(one.score for one in model.pieces if one.type == _NORMAL)
    return float(len(piece.encode()) * best - _USER_PENALTY)


def _backend(model: Any, where: str) -> Backend:
    is_bpe = model.trainer_spec.model_type == _BPE
    backend = Backend(_bpe(model) if is_bpe else _unigram(model))
    user = [piece.piece for piece in model.pieces if piece.type == _USER] if is_bpe else []
    backend.normalizer = _normalizer(model, user)
    for name in (piece.piece for piece in model.pieces if piece.type == _USER):
        if _without_prefix(model).normalize_str(name) != name:
            raise ConfigError(f"the normaliser changes the user-defined symbol {name!r}", where=where, mend=_MEND)
    splits = [f"{_SPACE}+[^{_SPACE}]*"] if _spaces_lead(model) else []
    splits += [] if is_bpe else [_apart(model, where)]
    backend.pre_tokenizer = pre_tokenizers.Sequence([pre_tokenizers.Split(Regex(one), "isolated") for one in splits])
    backend.decoder = _decoder(model)
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


def _without_prefix(model: Any) -> normalizers.Normalizer:
    return normalizers.Sequence([*_before_prefix(model), *_after_prefix(model)])


def _normalizer(model: Any, user: list[str]) -> normalizers.Normalizer:
    if not model.normalizer_spec.add_dummy_prefix:
        return _without_prefix(model)
    prefix = normalizers.Prepend(_SPACE)
    if user:
        # The library finds these symbols in normalised text by their normalised form, which must not get the prefix.
        whole = "|".join(re.escape(name) for name in user)
        prefix = normalizers.Replace(Regex(rf"\A(?!(?:{whole})?\z)"), _SPACE)
    return normalizers.Sequence([*_before_prefix(model), prefix, *_after_prefix(model)])


def _before_prefix(model: Any) -> list[normalizers.Normalizer]:
    steps: list[normalizers.Normalizer] = []
    if model.normalizer_spec.precompiled_charsmap:
        steps.append(normalizers.Precompiled(model.normalizer_spec.precompiled_charsmap))
    if model.normalizer_spec.remove_extra_whitespaces:
        steps.append(normalizers.Replace(Regex(r"\A +| +(?= )"), ""))
    return steps


def _after_prefix(model: Any) -> list[normalizers.Normalizer]:
    steps: list[normalizers.Normalizer] = [normalizers.Replace(" ", _SPACE)]
    if model.normalizer_spec.remove_extra_whitespaces:
        steps.append(normalizers.Replace(Regex(rf"{_SPACE}+\z"), ""))
    return steps


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


def _apart(model: Any, where: str) -> str:
    """An expression that cuts the spelling of every control and byte piece in two, where no other piece would lie.

    The library's Unigram would take them from text.
    """
    names = [piece.piece for piece in model.pieces if piece.type in (_NORMAL, _USER)]
    pairs = {name[at : at + 2] for name in names for at in range(len(name) - 1)}
    known = {name for name in names if len(name) == 1}
    fallback = model.trainer_spec.byte_fallback
    cuts: list[str] = []
    for name in (piece.piece for piece in model.pieces if piece.type in (_CONTROL, _UNKNOWN, _BYTE)):
        # Cutting between two unknown characters would make two unknown tokens of one.
        places = [at for at in range(1, len(name)) if name[at - 1 : at + 1] not in pairs]
        place = next((at for at in places if fallback or known.intersection(name[at - 1 : at + 1])), None)
        if place is None:
            what = f"text that spells {name!r} would be encoded as the token of the Unigram model"
            raise ConfigError(what, where=where, mend=_MEND)
        cuts.append(f"(?<={re.escape(name[:place])})(?={re.escape(name[place:])})")
    return "|".join(cuts)


def _marks(model: Any) -> DocumentMarks:
    def named(token: int, name: str) -> str | None:
        return name if token >= 0 else None

    spec = model.trainer_spec
    return DocumentMarks(named(spec.eos_id, spec.eos_piece), None, named(spec.pad_id, spec.pad_piece))


def _differing(backend: Backend, reference: Any, model: Any) -> list[str]:
    """The probe texts whose ids are not SentencePiece's own."""
    opened = Backend.from_str(backend.to_str())
    opened.encode_special_tokens = True
    texts = [*PROBES, *_own_probes(model)]
    return [text for text in texts if opened.encode(text, add_special_tokens=False).ids != reference.encode(text)]


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
