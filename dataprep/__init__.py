"""Raw text to sharded MindRecord for pretraining: clean, filter, deduplicate, tokenize, pack, prove."""

__version__ = "0.1.0"
