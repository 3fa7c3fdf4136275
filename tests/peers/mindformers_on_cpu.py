"""Train by a mindformers YAML on the CPU: argv is the YAML and a JSON object of what to change in it.

mindformers knows Ascend alone. Replaced here are the kernels that have no CPU version, by plain operators that do the
same; its trainer, its data path, its models and its optimizer are as installed.
"""

from __future__ import annotations

import json
import sys
from typing import Any

import mindformers.models.llama.llama_layer as llama_layer
import mindformers.parallel_core.training_graph.base_models.common.embeddings.rotary_pos_embedding as rotary
import mindformers.parallel_core.training_graph.base_models.gpt.gpt_layer_specs as layer_specs
import mindformers.parallel_core.training_graph.tensor_parallel.layers as parallel_layers
import mindformers.parallel_core.training_graph.transformer.norm as norm
import mindformers.wrapper.wrapper as wrapper
import mindspore as ms
from mindformers.core.context import build_context
from mindformers.tools.register import MindFormerConfig
from mindformers.trainer import Trainer
from mindspore import ops


class Outer(ms.nn.Cell):
    """Outer product of two vectors."""

    def construct(self, left: Any, right: Any) -> Any:
        return left.reshape((-1, 1)) * right.reshape((1, -1))

    def shard(self, *strategies: object) -> Outer:
        return self


class DocumentAttention(ms.nn.Cell):
    """Causal attention of [S, B, N, D] tensors that ends where actual_seq_len (flat, equally many a row) says."""

    def __init__(self, config: Any, *names: object, **options: object) -> None:
        super().__init__()
        self.scale = config.kv_channels**-0.5

    def construct(
        self,
        query: Any,
        key: Any,
        value: Any,
        attention_mask: Any,
        actual_seq_qlen: Any = None,
        actual_seq_kvlen: Any = None,
    ) -> Any:
        length, batch, heads, width = query.shape
        groups = heads // key.shape[2]
        query = query.transpose(1, 2, 0, 3)
        key = ops.repeat_interleave(key.transpose(1, 2, 0, 3), groups, 1)
        value = ops.repeat_interleave(value.transpose(1, 2, 0, 3), groups, 1)
        scores = ops.matmul(query, key.swapaxes(-1, -2)).astype(ms.float32) * self.scale
        hidden = attention_mask.astype(ms.float32)
        if actual_seq_qlen is not None:
            place = ops.arange(length).reshape((1, length, 1))
            ends = actual_seq_qlen.reshape((batch, 1, -1))
            segment = (place >= ends).astype(ms.int32).sum(-1)
            other = (segment.expand_dims(2) != segment.expand_dims(1)).astype(ms.float32)
            hidden = ops.maximum(hidden, other.expand_dims(1))
        weights = ops.softmax(scores - hidden * 10000.0, -1).astype(value.dtype)
        return ops.matmul(weights, value).transpose(2, 0, 1, 3).reshape(length, batch, heads * width)


def look_up(self: Any, ids: Any) -> Any:
    """Embedding of ids."""
    return ops.gather(self.weight, ids, 0)


def replace_kernels() -> None:
    """Put the above, and what mindformers has itself, in the place of Ascend's kernels."""
    llama_layer.check_rmsnorm_big_kernel_valid = lambda *args: False
    norm.FusedRMSNorm = norm.RMSNorm
    rotary.Outer = Outer
    layer_specs.FlashAttention = DocumentAttention
    parallel_layers.VocabParallelEmbedding.construct = look_up
    made = wrapper.MFTrainOneStepCell.__init__

    def init(self: Any, *args: object, **options: object) -> None:
        made(self, *args, **options)
        # Which overflow check to build; the CPU has neither, and this one does without.
        self.ascend_910b_target, self._ascend_check_overflow_mode, self.enable_allfinite = True, "INFNAN_MODE", False

    wrapper.MFTrainOneStepCell.__init__ = init


if __name__ == "__main__":
    replace_kernels()
    config = MindFormerConfig(sys.argv[1])
    config.merge_from_dict(json.loads(sys.argv[2]))
    build_context(config)
    Trainer(config).train()
