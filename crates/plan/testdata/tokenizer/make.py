"""Makes tokenizer.json: byte-level BPE as GPT-2 has it, trained on a few words only, so that of the words that prompts
are made of some are one token and some are several. Needs `pip install tokenizers`; run it in this folder."""

from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers

TEXT = "the of and to in is that for it as was with be by on not he his but at are this have from or had an they which one"

tokenizer = Tokenizer(models.BPE())
tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
tokenizer.decoder = decoders.ByteLevel()
trainer = trainers.BpeTrainer(
    vocab_size=360,
    show_progress=False,
    special_tokens=["<|end|>"],
    initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
)
tokenizer.train_from_iterator([TEXT] * 20, trainer)
tokenizer.save("tokenizer.json", pretty=False)
