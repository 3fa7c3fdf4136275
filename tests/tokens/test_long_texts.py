"""Texts that give no place to cut, and very many texts: equal ids, and memory that does not grow."""

from __future__ import annotations

import base64
import json
import os
import random
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from tokenizers import Regex, models, pre_tokenizers, trainers
from tokenizers import Tokenizer as Backend

from dataprep.tokens.config import TokenizerConfig
from dataprep.tokens.cuts import GPT4_DIGITS_3
from dataprep.tokens.engines import Fastokens
from dataprep.tokens.source import Source
from dataprep.tokens.tokenizer import Tokenizer, load_tokenizer
from tests.tokens.samples import SENTENCES

_RANDOM = random.Random(7)
LONG = {
    "one letter": "a" * 1_000_000,
    "spaces": " " * 1_000_000,
    "line ends": "\n" * 1_000_000,
    "digits": "7" * 1_000_000,
    "marks on one letter": "a" + "\u0301" * 300_000,
    "joined emoji": "\U0001f469\u200d\U0001f467" * 100_000,
    "letters without spaces": "".join(_RANDOM.choices("etaoinshrdlu", k=5_000_000)),
    "Chinese without spaces": "".join(map(chr, _RANDOM.choices(range(0x4E00, 0x9FA6), k=1_700_000))),
    "base64": base64.b64encode(_RANDOM.randbytes(3_000_000)).decode(),
}


def trained() -> bytes:
    """A byte-level BPE of the sentences, split as GPT-4 splits, as tokenizer.json."""
    backend = Backend(models.BPE())
    split = pre_tokenizers.Split(Regex(GPT4_DIGITS_3), "isolated")
    backend.pre_tokenizer = pre_tokenizers.Sequence(
        [split, pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)]
    )
    trainer = trainers.BpeTrainer(
        vocab_size=600, initial_alphabet=pre_tokenizers.ByteLevel.alphabet(), show_progress=False
    )
    backend.train_from_iterator(SENTENCES * 20, trainer)
    return backend.to_str().encode()


@pytest.fixture(scope="module")
def tokenizer() -> Tokenizer:
    config = TokenizerConfig.model_validate(
        {"path": "made.json", "eos": "<e>", "pad": "<p>", "add_special_tokens": ["<e>", "<p>"]}
    )
    return load_tokenizer(config, Source("tokenizer.json", trained()))


@pytest.mark.slow
@pytest.mark.parametrize("name", LONG)
def test_a_long_text_encodes_as_the_library_encodes_it_whole(name: str, tokenizer: Tokenizer) -> None:
    text = LONG[name]
    whole = Backend.from_str(tokenizer.encoding_json.decode()).encode(text, add_special_tokens=False).ids
    assert np.array_equal(tokenizer.encode_plain([text]).ids, whole)
    assert np.array_equal(tokenizer.encode_plain([text], Fastokens(tokenizer.encoding_json).encode).ids, whole)


PROGRAM = """
import json, re, sys
import numpy as np, pyarrow as pa
from pathlib import Path
from dataprep.runtime.parts import content_hashes
from dataprep.tokens.config import TokenizerConfig
from dataprep.tokens.engines import Encoder, Fastokens
from dataprep.tokens.spelling import spelling_of
from dataprep.tokens.source import Source
from dataprep.tokens.tokenizer import load_tokenizer

config = TokenizerConfig.model_validate(
    {"path": "made.json", "eos": "<e>", "pad": "<p>", "add_special_tokens": ["<e>", "<p>"]})
tokenizer = load_tokenizer(config, Source("tokenizer.json", Path(sys.argv[1]).read_bytes()))
encoder = Encoder(tokenizer, Fastokens(tokenizer.encoding_json), 1000, spelling_of(json.loads(tokenizer.encoding_json)))
draws, resident = np.random.default_rng(0), []
for block in range(100):
    words = draws.integers(0, 26, (10_000, 48), np.uint8) + np.uint8(97)
    words[:, 7::8] = 32
    text = pa.array([row.tobytes().decode() for row in words], pa.large_string())
    encoder.encode(text, content_hashes(text))
    resident.append(int(re.search(r"VmRSS:\\s+(\\d+)", Path("/proc/self/status").read_text())[1]) // 1024)
print(json.dumps({"resident": resident, "documents": encoder.checks.documents, "compared": encoder.checks.compared}))
"""


@pytest.mark.slow
def test_a_million_documents_of_new_words_leave_memory_where_it_was(tmp_path: Path) -> None:
    (tmp_path / "made.json").write_bytes(trained())
    threads = {"RAYON_NUM_THREADS": "1", "TOKENIZERS_PARALLELISM": "false"}
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM, str(tmp_path / "made.json")],
        capture_output=True,
        text=True,
        check=True,
        env={**os.environ, **threads},
    )
    told = json.loads(done.stdout)
    assert told["documents"] == 1_000_000
    assert 800 < told["compared"] < 1200
    # Caches fill up with some 4 million words at first. 2 million new words later they are no larger: a leak of 13
    # bytes a word would show.
    assert told["resident"][-1] - told["resident"][69] < 25
