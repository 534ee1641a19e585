"""How long one core takes to tokenise prompts, and to make text of a few tokens: a byte-level BPE that is trained on Python's libraries.

Usage: RAYON_NUM_THREADS=1 python3 tokenising.py     needs the package tokenizers
"""
import glob
import os
import time

from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers


def texts(most=30_000_000):
    out, size = [], 0
    for path in sorted(glob.glob(os.path.dirname(os.path.dirname(models.__file__)) + "/../**/*.py", recursive=True)):
        try:
            out.append(open(path).read())
        except (OSError, UnicodeDecodeError):
            continue
        size += len(out[-1])
        if size > most:
            break
    return out


def main():
    corpus = texts()
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=True)
    tokenizer.decoder = decoders.ByteLevel()
    alphabet = pre_tokenizers.ByteLevel.alphabet()
    tokenizer.train_from_iterator(corpus, trainers.BpeTrainer(vocab_size=64000, initial_alphabet=alphabet, show_progress=False))
    whole = "".join(corpus[::7])[:600_000]
    characters = 200_000 / len(tokenizer.encode(whole[:200_000]).ids)
    for tokens in (128, 600, 2000, 8000):
        size = int(tokens * characters)
        prompts = [whole[i:i + size] for i in range(0, len(whole) - size, size)][:40]
        start = time.perf_counter()
        count = sum(len(tokenizer.encode(prompt).ids) for prompt in prompts)
        print(f"prompts of {count / len(prompts):.0f} tokens: {1e6 * (time.perf_counter() - start) / count:.2f} us per token")
    ids = tokenizer.encode(whole[:20_000]).ids
    start = time.perf_counter()
    for i in range(2000):
        tokenizer.decode(ids[i:i + 6])
    print(f"text of 6 tokens: {1e6 * (time.perf_counter() - start) / 2000:.2f} us")


if __name__ == "__main__":
    main()
