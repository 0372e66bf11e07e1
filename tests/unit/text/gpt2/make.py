# SPDX-License-Identifier: Apache-2.0
"""Makes the files of this folder: a small byte-level vocabulary trained by the tokenizers library, in the formats of GPT-2
(vocab.json, merges.txt) and of tiktoken (ranks.tiktoken), and what both libraries say of random texts (cases.json).

    pip install tokenizers tiktoken; python make.py TEXT     # any English text to train on
"""
import base64, json, random, sys, unicodedata
import tiktoken
from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers

PATTERN = r"""'s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+"""
ODD = "Grüße, naïve café — “quoted” … 日本語のテキスト, Привет мир! नमस्ते ١٢٣ ½ €5 🙂🙃 e\u0301 don't I'll we've it's  \t\n\n"


def library_tokenizer(text, size):
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(vocab_size=size, initial_alphabet=sorted(pre_tokenizers.ByteLevel.alphabet()), show_progress=False,
                                  special_tokens=[])
    tokenizer.train_from_iterator([text[:300000], ODD * 50], trainer)
    return tokenizer


def bytes_by_character():
    shown = [*range(0x21, 0x7F), *range(0xA1, 0xAD), *range(0xAE, 0x100)]
    hidden = [b for b in range(256) if b not in shown]
    return {chr(c): b for c, b in [*zip(shown, shown), *zip(range(0x100, 0x200), hidden)]}


def random_text(rng, length):
    scripts = ["abcdefghijklmnopqrstuvwxyzETAOIN", "    \t\n\r\u00a0\u3000\u2003\x0b\x1c\x85", "0123456789", "!?.,;:-'\"()[]{}#$%&*+/<=>@\\^_`|~",
               "äöüßéèçñøåÆ", "日本語中文字漢", "приветмирЖ", "مرحبا١٢٣", "नमस्ते्", "½¾²Ⅷ௧", "🙂🙃👩‍💻🇩🇪", "\u0301\u0308\u200d\ufeff"]
    parts = []
    while len(parts) < length:
        kind = rng.random()
        if kind < 0.2:
            parts.append(rng.choice(["the ", " and", "'s", "'ll ", "'re", "'ve", "'m", "'d", "'t ", "n't", "  ", " \n", "ROMEO:\n", "aaaa", " 2024"]))
        elif kind < 0.9:
            parts.append("".join(rng.choice(rng.choice(scripts[:4] if rng.random() < 0.6 else scripts)) for _ in range(rng.randint(1, 4))))
        else:
            while unicodedata.category(c := chr(rng.randrange(0x110000))) in ("Cn", "Cs"):
                pass
            parts.append(c)
    return "".join(parts)


def main():
    text = open(sys.argv[1], encoding="utf-8").read()
    tokenizer = library_tokenizer(text, 900)
    tokenizer.model.save(".")
    byte_of = bytes_by_character()
    vocabulary = {bytes(byte_of[c] for c in name): number for name, number in tokenizer.get_vocab().items()}
    with open("ranks.tiktoken", "w") as file:
        for token, rank in sorted(vocabulary.items(), key=lambda item: item[1]):
            file.write(f"{base64.b64encode(token).decode()} {rank}\n")
    ranks = tiktoken.Encoding("small", pat_str=PATTERN, mergeable_ranks=vocabulary, special_tokens={})
    rng = random.Random(1)
    texts = ["", ODD, "a" * 100, "thethethe" * 30, "日本語" * 40, " " * 80 + "x", "'" * 70, "naïve" * 20]
    texts += [random_text(rng, rng.randint(1, 12)) for _ in range(250)]
    cases = [{"text": t, "merges": tokenizer.encode(t).ids, "ranks": ranks.encode_ordinary(t)} for t in texts]
    with open("cases.json", "w") as file:
        file.write("[\n" + ",\n".join(json.dumps(c, separators=(",", ":")) for c in cases) + "\n]\n")


main()
