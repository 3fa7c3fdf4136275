"""The SentencePiece library: opened only where a model needs it, with how to get it."""

from __future__ import annotations

from types import ModuleType
from typing import Any

from dataprep.errors import ConfigError, EnvironmentFailure


def sentencepiece(where: str) -> tuple[ModuleType, ModuleType]:
    """The library and the module of its messages. Raises EnvironmentFailure if it is missing."""
    try:
        import sentencepiece
        from sentencepiece import sentencepiece_model_pb2
    except ImportError as error:
        mend = 'pip install "dataprep[sentencepiece]"'
        raise EnvironmentFailure(f"a SentencePiece model needs a library: {error}", where=where, mend=mend) from error
    return sentencepiece, sentencepiece_model_pb2


def user_defined(model: bytes, where: str) -> set[str]:
    """The symbols of a serialised model that are found in every text, whatever their scores."""
    _, messages = sentencepiece(where)
    pieces = messages.ModelProto.FromString(model).pieces
    return {piece.piece for piece in pieces if piece.type == messages.ModelProto.SentencePiece.USER_DEFINED}


def open_processor(model: bytes, where: str) -> Any:
    """The library's processor of a serialised model. Raises ConfigError if it is none, EnvironmentFailure as above."""
    library, _ = sentencepiece(where)
    try:
        return library.SentencePieceProcessor(model_proto=model)
    except Exception as error:  # the library raises RuntimeError for every fault of the model
        raise ConfigError(f"not a SentencePiece model: {error}", where=where) from error
