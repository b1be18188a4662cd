"""The compiled client of sglang's wheel, without the rest of sglang.

    sglang.py unpack WHEEL FOLDER    takes the module out of the wheel, and makes a tokenizer for it
    sglang.py run FOLDER ARG…        runs the client with those arguments
"""

import glob
import importlib.util
import json
import os
import sys
import zipfile


def unpack(wheel, folder):
    with zipfile.ZipFile(wheel) as archive:
        name = next(n for n in archive.namelist() if n.startswith("sglang/srt/rust_extensions/_bench"))
        with open(os.path.join(folder, os.path.basename(name)), "wb") as out:
            out.write(archive.read(name))
    # The client draws its prompts from a vocabulary: a word a token.
    vocabulary = {"[UNK]": 0, **{f"w{i}": i + 1 for i in range(1000)}}
    tokenizer = {
        "version": "1.0",
        "truncation": None,
        "padding": None,
        "added_tokens": [],
        "normalizer": None,
        "pre_tokenizer": {"type": "Whitespace"},
        "post_processor": None,
        "decoder": None,
        "model": {"type": "WordLevel", "vocab": vocabulary, "unk_token": "[UNK]"},
    }
    with open(os.path.join(folder, "tokenizer.json"), "w") as out:
        json.dump(tokenizer, out)


def run(folder, arguments):
    spec = importlib.util.spec_from_file_location("_bench", glob.glob(os.path.join(folder, "_bench*.so"))[0])
    client = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(client)
    client.run_argv(["sglang-bench", *arguments])


if __name__ == "__main__":
    if sys.argv[1] == "unpack":
        unpack(sys.argv[2], sys.argv[3])
    else:
        run(sys.argv[2], sys.argv[3:])
