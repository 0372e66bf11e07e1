# SPDX-License-Identifier: Apache-2.0
"""Makes the files of this folder: small vocabularies trained by sentencepiece (*.model) and tokenizers (*.json), and what these libraries
say of random texts (cases.json: text, and by file the tokens and what they decode to).

    pip install sentencepiece tokenizers; python make.py TEXT     # any English text to train on
"""
import io, json, random, sys, tempfile, unicodedata
import sentencepiece as spm
from tokenizers import AddedToken, Regex, Tokenizer, decoders, models, normalizers, pre_tokenizers, trainers

ODD = "Grüße, naïve café — “quoted” … 日本語のテキスト, Привет мир! ١٢٣ ½ €5 🙂🙃 e\u0301 don't I'll we've it's ｆｕｌｌ ﬁne ＡＢＣ"
# What sentencepiece's replacements are made of, in its own form: code points, a tab, code points.
REPLACEMENTS = "FB01\t66 69\n0065 0301\t00E9\n3000\t20\n9\t20\nA\t20\nAD\t\nFF41\t61\n2026\t2E 2E 2E\nFF41 FF42\t61 62\n"
LLAMA3 = r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"


def sentences(text):
    return [line for line in text[:60000].splitlines() if line.strip()] + [ODD] * 20


def sentencepiece_models(text):
    with tempfile.NamedTemporaryFile("w", suffix=".tsv") as rules:
        rules.write(REPLACEMENTS)
        rules.flush()
        common = dict(vocab_size=420, character_coverage=0.98, minloglevel=2, num_threads=1)
        variants = {
            "unigram": dict(model_type="unigram", normalization_rule_tsv=rules.name),
            "unigram_bytes": dict(model_type="unigram", vocab_size=560, byte_fallback=True, normalization_rule_name="identity",
                                  remove_extra_whitespaces=False, user_defined_symbols=["<sep>", "the"], allow_whitespace_only_pieces=True),
            "pairs": dict(model_type="bpe", normalization_rule_tsv=rules.name, user_defined_symbols=["<sep>", "ing"]),
            "pairs_bytes": dict(model_type="bpe", vocab_size=600, byte_fallback=True, normalization_rule_name="identity",
                                remove_extra_whitespaces=False, allow_whitespace_only_pieces=True),
            "pairs_across_words": dict(model_type="bpe", normalization_rule_name="identity", split_by_whitespace=False,
                                       add_dummy_prefix=False, treat_whitespace_as_suffix=True),
        }
        for name, options in variants.items():
            model = io.BytesIO()
            spm.SentencePieceTrainer.train(sentence_iterator=iter(sentences(text)), model_writer=model, **{**common, **options})
            with open(name + ".model", "wb") as file:
                file.write(shrunk(model.getvalue()))
            yield name + ".model"


def shrunk(model):
    """Without the trainer's settings that do not matter to a reader, such as names of temporary files."""
    from sentencepiece import sentencepiece_model_pb2 as pb
    message = pb.ModelProto.FromString(model)
    kept = pb.TrainerSpec(model_type=message.trainer_spec.model_type, byte_fallback=message.trainer_spec.byte_fallback,
                          treat_whitespace_as_suffix=message.trainer_spec.treat_whitespace_as_suffix)
    message.trainer_spec.CopyFrom(kept)
    message.normalizer_spec.normalization_rule_tsv = ""
    return message.SerializeToString()


def charsmap():
    from sentencepiece import sentencepiece_model_pb2 as pb
    return pb.ModelProto.FromString(open("unigram.model", "rb").read()).normalizer_spec.precompiled_charsmap


def library_tokenizers(text):
    byte_alphabet = sorted(pre_tokenizers.ByteLevel.alphabet())

    gpt2 = Tokenizer(models.BPE())
    gpt2.pre_tokenizer, gpt2.decoder = pre_tokenizers.ByteLevel(add_prefix_space=False), decoders.ByteLevel()
    yield "byte_level", gpt2, trainers.BpeTrainer(vocab_size=500, initial_alphabet=byte_alphabet, show_progress=False,
                                                  special_tokens=["<|endoftext|>"])

    llama3 = Tokenizer(models.BPE(ignore_merges=True))
    llama3.pre_tokenizer = pre_tokenizers.Sequence([pre_tokenizers.Split(Regex(LLAMA3), "isolated"),
                                                    pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)])
    llama3.decoder = decoders.ByteLevel()
    yield "split_pattern", llama3, trainers.BpeTrainer(vocab_size=500, initial_alphabet=byte_alphabet, show_progress=False)

    llama2 = Tokenizer(models.BPE(byte_fallback=True, fuse_unk=True, unk_token="<unk>"))
    llama2.normalizer = normalizers.Sequence([normalizers.Prepend("▁"), normalizers.Replace(" ", "▁")])
    llama2.decoder = decoders.Sequence([decoders.Replace("▁", " "), decoders.ByteFallback(), decoders.Fuse(), decoders.Strip(" ", 1, 0)])
    yield "byte_fallback", llama2, trainers.BpeTrainer(
        vocab_size=600, show_progress=False, limit_alphabet=80, max_token_length=12,
        special_tokens=["<unk>", "<s>", "</s>"] + [f"<0x{byte:02X}>" for byte in range(256)])

    roberta = Tokenizer(models.Unigram())
    roberta.normalizer = normalizers.Sequence([normalizers.Precompiled(charsmap()), normalizers.Replace(Regex(" {2,}"), " ")])
    roberta.pre_tokenizer, roberta.decoder = pre_tokenizers.Metaspace(), decoders.Metaspace()
    yield "unigram", roberta, trainers.UnigramTrainer(vocab_size=400, show_progress=False, special_tokens=["<s>", "<unk>"], unk_token="<unk>")

    first = Tokenizer(models.Unigram())
    first.normalizer = normalizers.Sequence([normalizers.NFKC(), normalizers.Strip()])
    first.pre_tokenizer = pre_tokenizers.Sequence([pre_tokenizers.Digits(individual_digits=True), pre_tokenizers.Punctuation(),
                                                   pre_tokenizers.Metaspace(prepend_scheme="first")])
    first.decoder = decoders.Metaspace(prepend_scheme="first")
    yield "unigram_first", first, trainers.UnigramTrainer(vocab_size=400, show_progress=False, special_tokens=["<unk>"], unk_token="<unk>")

    words = Tokenizer(models.BPE(unk_token="[UNK]", end_of_word_suffix="</w>"))
    words.normalizer = normalizers.Sequence([normalizers.NFD(), normalizers.Lowercase(), normalizers.StripAccents(), normalizers.NFC()])
    words.pre_tokenizer = pre_tokenizers.Sequence([pre_tokenizers.Whitespace(), pre_tokenizers.Digits()])
    yield "words", words, trainers.BpeTrainer(vocab_size=400, show_progress=False, special_tokens=["[UNK]"], end_of_word_suffix="</w>",
                                              limit_alphabet=70)

    merged = Tokenizer(models.BPE(unk_token="[UNK]", continuing_subword_prefix="##", fuse_unk=True))
    merged.normalizer = normalizers.NFKD()
    merged.pre_tokenizer = pre_tokenizers.Sequence([pre_tokenizers.Split(",", "merged_with_previous"), pre_tokenizers.Split(Regex("[A-Z]"), "merged_with_next"),
                                                    pre_tokenizers.Split(Regex("[ \n]"), "removed"), pre_tokenizers.Split(Regex("[a-z]+"), "contiguous", invert=True)])
    yield "behaviors", merged, trainers.BpeTrainer(vocab_size=400, show_progress=False, special_tokens=["[UNK]"], continuing_subword_prefix="##",
                                                   limit_alphabet=60)


def save(tokenizer, path):
    """With bytes as tokens of the model alone, as in files that are made of sentencepiece's models."""
    content = json.loads(tokenizer.to_str())
    content["added_tokens"] = [token for token in content["added_tokens"] if not token["content"].startswith("<0x")]
    with open(path, "w") as file:
        json.dump(content, file, separators=(",", ":"), ensure_ascii=False)


def random_text(rng, length):
    scripts = ["abcdefghijklmnopqrstuvwxyzETAOIN", "    \t\n\r\u00a0\u3000\u2003\x85", "0123456789", "!?.,;:-'\"()[]{}#$%&*+/<=>@\\^_`|~",
               "äöüßéèçñøåÆİ", "日本語中文字漢", "приветмирЖ", "مرحبا١٢٣", "½¾²Ⅷﬁｆｕ", "🙂🙃👩‍💻🇩🇪", "\u0301\u0308\u200d\ufeff\u00ad"]
    parts = []
    while len(parts) < length:
        kind = rng.random()
        if kind < 0.35:
            parts.append(rng.choice(["the ", " and", "'s", "'ll ", "'re", "'Ve", "n't", "  ", " \n", "ROMEO:\n", "aaaa", " 2024", "▁", "<sep>", "<s>",
                                     "<unk>", "[UNK]", "<0x0A>", "<|endoftext|>", " <mask> ", "Foo", "ing", "e\u0301", "work ", " information"]))
        elif kind < 0.95:
            parts.append("".join(rng.choice(rng.choice(scripts[:4] if rng.random() < 0.7 else scripts)) for _ in range(rng.randint(1, 5))))
        else:
            while unicodedata.category(c := chr(rng.randrange(0x30000))) in ("Cn", "Cs"):
                pass
            parts.append(c)
    return "".join(parts)


def main():
    text = open(sys.argv[1], encoding="utf-8").read()
    encoders = {}
    for name in sentencepiece_models(text):
        model = spm.SentencePieceProcessor(model_file=name)
        encoders[name] = (model.encode, model.decode)
    for name, tokenizer, trainer in library_tokenizers(text):
        tokenizer.train_from_iterator(sentences(text), trainer)
        tokenizer.add_tokens([AddedToken("<mask>", lstrip=True, rstrip=name == "unigram", normalized=False), AddedToken("Foo", normalized=True)])
        save(tokenizer, name + ".json")
        tokenizer = Tokenizer.from_file(name + ".json")
        encoders[name + ".json"] = (lambda t, k=tokenizer: k.encode(t, add_special_tokens=False).ids,
                                    lambda ids, k=tokenizer: k.decode(ids, skip_special_tokens=False))
    rng = random.Random(1)
    texts = ["", ODD, "a" * 100, "thethethe" * 30, " " * 20 + "x", "x" + " " * 20, "naïve" * 20, "\n", " ", "the quick brown fox jumps over",
             "the ing<sep>thing", "ééé", "日本語" * 20, "<mask>", "a <mask>  b", "FooFoo foo", "\x00a\x00", "e\u0301\u0308"]
    texts += [random_text(rng, rng.randint(1, 12)) for _ in range(90)]
    cases = []
    for t in texts:
        case = {"text": t}
        for name, (encode, decode) in encoders.items():
            ids = encode(t)
            case[name] = [ids, decode(ids)]
        cases.append(case)
    with open("cases.json", "w") as file:
        file.write("[\n" + ",\n".join(json.dumps(c, separators=(",", ":")) for c in cases) + "\n]\n")


main()
