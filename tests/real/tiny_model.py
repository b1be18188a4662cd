"""Writes a tiny Llama (configuration and tokenizer; its weights are made up by the server that loads it).

Usage: tiny_model.py FOLDER
"""

import argparse
import asyncio
import json
import logging
import pydoc
import statistics
import sys
from pathlib import Path

from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers
from transformers import PreTrainedTokenizerFast

END = "<|endoftext|>"
TURN, TURN_END = "<|im_start|>", "<|im_end|>"
TEMPLATE = (
    "{% for message in messages %}" + TURN + "{{ message['role'] }}\n{{ message['content'] }}" + TURN_END + "\n{% endfor %}"
    "{% if add_generation_prompt %}" + TURN + "assistant\n{% endif %}"
)


def tokenizer() -> PreTrainedTokenizerFast:
    """Byte-level BPE with 4,096 entries, trained on documentation that every Python brings."""
    text = [pydoc.plain(pydoc.render_doc(module)) for module in (argparse, asyncio, json, logging, statistics)]
    raw = Tokenizer(models.BPE())
    raw.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    raw.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=4096, special_tokens=[END, TURN, TURN_END], initial_alphabet=pre_tokenizers.ByteLevel.alphabet()
    )
    raw.train_from_iterator((line for document in text for line in document.splitlines()), trainer)
    fast = PreTrainedTokenizerFast(tokenizer_object=raw, bos_token=END, eos_token=TURN_END, pad_token=END)
    fast.chat_template = TEMPLATE
    return fast


def main() -> None:
    folder = Path(sys.argv[1])
    folder.mkdir(parents=True, exist_ok=True)
    fast = tokenizer()
    fast.save_pretrained(folder)
    ids = {"bos_token_id": 0, "eos_token_id": 2, "pad_token_id": 0}
    config = {
        "architectures": ["LlamaForCausalLM"],
        "model_type": "llama",
        "hidden_size": 128,
        "intermediate_size": 256,
        "num_hidden_layers": 2,
        "num_attention_heads": 4,
        "num_key_value_heads": 2,
        "head_dim": 32,
        "vocab_size": len(fast),
        "max_position_embeddings": 16384,
        "rms_norm_eps": 1e-5,
        "rope_theta": 10000.0,
        "hidden_act": "silu",
        "tie_word_embeddings": False,
        "torch_dtype": "bfloat16",
        **ids,
    }
    # Written last: who finds it finds the rest too.
    (folder / "generation_config.json").write_text(json.dumps(ids))
    (folder / "config.json").write_text(json.dumps(config, indent=1))


if __name__ == "__main__":
    main()
