// SPDX-License-Identifier: Apache-2.0
// `einc tokenize TEXT -o train.bin` and its inverse `einc detokenize train.bin`.
#include <fmt/format.h>

#include <algorithm>
#include <cstdio>
#include <filesystem>

#include "compiler/driver/check_outputs.h"
#include "compiler/driver/command_line.h"
#include "compiler/driver/standard_streams.h"
#include "compiler/driver/vocabulary.h"
#include "runtime/data/token_file.h"
#include "runtime/text/characters.h"
#include "runtime/text/tokenizer.h"
#include "runtime/text/utf8.h"

namespace einc {
namespace {

struct TokenizeRequest {
  std::string input, output, dtype;
  VocabularyRequest vocabulary;
  double split = 1;
};

ExitStatus wrong_usage(const std::string& message) { return fmt::print(stderr, "einc: {}\n", message), ExitStatus::wrong_usage; }

// NAME in the folder of the path.
std::string beside(const std::string& path, const std::string& name) { return (std::filesystem::path(path).parent_path() / name).string(); }

// val.bin beside train.bin, val.u32.bin beside train.u32.bin.
std::string validation_path(const std::string& path) {
  const std::string name = std::filesystem::path(path).filename().string();
  const size_t dot = name.find('.');
  return beside(path, "val" + (dot == std::string::npos ? "" : name.substr(dot)));
}

// Bytes before the split: int(fraction * characters) of them, as nanoGPT cuts; of bytes for tokens that are bytes.
size_t split_at(std::string_view text, double fraction, std::optional<TokenizerKind> kind) {
  const auto part_of = [&](size_t count) { return static_cast<size_t>(static_cast<double>(count) * fraction); };
  if (fraction == 1) return text.size();
  if (kind == TokenizerKind::bytes) return part_of(text.size());
  size_t count = 0, at = 0;
  for (size_t i = 0; i < text.size(); ++count) i += code_point_at(text, i).length;
  for (size_t left = part_of(count); left > 0; --left) at += code_point_at(text, at).length;
  return at;
}

template <class Stored>
void write_as(PendingFile& file, std::span<const int32_t> tokens) {
  const std::vector<Stored> stored(tokens.begin(), tokens.end());
  file.write(std::as_bytes(std::span(stored)));
}

// Writes all but the name; returns how many tokens.
uint64_t write_tokens(PendingFile& file, const Tokenizer& tokenizer, std::string_view text, TokenFormat format) {
  uint64_t count = 0;
  tokenizer.encode(text, [&](std::span<const int32_t> tokens) {
    count += tokens.size();
    format == TokenFormat::u16 ? write_as<uint16_t>(file, tokens) : write_as<uint32_t>(file, tokens);
  });
  return count;
}

ExitStatus tokenize(const TokenizeRequest& request) {
  const std::string validation = validation_path(request.output), characters_path = beside(request.output, "chars.json");
  const std::optional<TokenizerKind> kind = kind_of(request.vocabulary);
  const bool makes_characters = kind == TokenizerKind::characters && request.vocabulary.files.vocabulary.empty();
  const NamedFiles outputs{{"-o", request.output},
                           {"--split, which writes", request.split < 1 ? validation : ""},
                           {"--kind chars, which writes", makes_characters ? characters_path : ""}};
  if (request.split < 1 && validation == request.output)
    return wrong_usage(fmt::format("--split writes {} too, which -o names already", printable(validation)));
  if (!check_outputs(
          outputs,
          {{"the text", request.input}, {"--vocab", request.vocabulary.files.vocabulary}, {"--merges", request.vocabulary.files.merges}}))
    return ExitStatus::wrong_usage;
  const MappedFile file(request.input);
  const std::string_view text(reinterpret_cast<const char*>(file.bytes().data()), file.bytes().size());

  std::unique_ptr<Tokenizer> tokenizer;
  std::vector<int32_t> characters;
  if (makes_characters)
    tokenizer = std::make_unique<CharacterTokenizer>(characters = characters_of(text));
  else
    tokenizer = open_tokenizer(request.vocabulary.files, kind);
  const TokenFormat format = token_format_of(request.output);
  if (format == TokenFormat::u16 && tokenizer->size() > 65536)
    return wrong_usage(
        fmt::format("a vocabulary of {} tokens needs 32 bits each: name the file {}.u32", tokenizer->size(), printable(request.output)));

  PendingFile first(request.output);
  const size_t cut = split_at(text, request.split, kind);
  const uint64_t first_count = write_tokens(first, *tokenizer, text.substr(0, cut), format);
  fmt::print(stderr, "{}: {} tokens ({}) of {} bytes, vocabulary of {}\n", printable(request.output), first_count, to_string(format), cut,
             tokenizer->size());
  if (request.split < 1) {
    PendingFile second(validation);
    const uint64_t count = write_tokens(second, *tokenizer, text.substr(cut), format);
    file.check_whole();
    second.finish();
    fmt::print(stderr, "{}: {} tokens of {} bytes\n", printable(validation), count, text.size() - cut);
  }
  file.check_whole();
  if (makes_characters) {
    save_characters(characters_path, characters);
    fmt::print(stderr, "{}: the vocabulary, {} characters\n", printable(characters_path), characters.size());
  }
  first.finish();
  return ExitStatus::done;
}

ExitStatus detokenize(const TokenizeRequest& request) {
  if (!check_outputs(
          {{"-o", request.output}},
          {{"the tokens", request.input}, {"--vocab", request.vocabulary.files.vocabulary}, {"--merges", request.vocabulary.files.merges}}))
    return ExitStatus::wrong_usage;
  const std::unique_ptr<Tokenizer> tokenizer = open_tokenizer(request.vocabulary.files, kind_of(request.vocabulary));
  std::optional<TokenFormat> format;
  if (!request.dtype.empty()) format = request.dtype == "u16" ? TokenFormat::u16 : TokenFormat::u32;
  const TokenFile file(request.input, format);
  std::optional<PendingFile> output;
  if (!request.output.empty()) output.emplace(request.output);
  constexpr uint64_t kPiece = 1 << 16;
  std::vector<int32_t> tokens;
  std::string text;
  for (uint64_t at = 0; at < file.count(); at += kPiece) {
    tokens.resize(std::min(kPiece, file.count() - at));
    file.read(at, tokens);
    const auto wrong = std::find_if(tokens.begin(), tokens.end(), [&](int32_t token) { return token >= tokenizer->size(); });
    if (wrong != tokens.end())
      throw RuntimeFailure(FailureKind::data, fmt::format("{}: token {} is {}, but the vocabulary has {}", printable(request.input),
                                                          at + static_cast<uint64_t>(wrong - tokens.begin()), *wrong, tokenizer->size()));
    text.clear();
    tokenizer->decode(tokens, text, at == 0 ? TextPart::start : TextPart::middle);
    if (output)
      output->write(std::as_bytes(std::span(text)));
    else
      std::fwrite(text.data(), 1, text.size(), stdout);
    if (output_is_lost()) break;
  }
  if (output) output->finish();
  return ExitStatus::done;
}

}  // namespace

ExitStatus tokenize_command(Arguments arguments) {
  TokenizeRequest request;
  CLI::App app("Turns text into a file of tokens for einc train: 16-bit numbers, one after the other, and nothing else.", "einc tokenize");
  app.add_option("TEXT", request.input, "a text file in UTF-8; for --kind bytes, gpt2 and sentencepiece, any file")->required();
  app.add_option("-o,--output", request.output, "the file of tokens, such as train.bin; one named *.u32 or *.u32.bin has 32 bits a token")
      ->required();
  add_vocabulary_options(app, request.vocabulary);
  app.add_option("--split", request.split, "the part of the text that goes to -o, such as 0.9; the rest goes to val.bin beside it")
      ->check(number_between(0, 1));
  app.footer(
      "--kind chars without --vocab numbers the text's characters in their order, as nanoGPT does, and writes chars.json beside the "
      "tokens.");
  if (auto status = parse_arguments(app, arguments)) return *status;
  if (const auto problem = contradiction(request.vocabulary)) return wrong_usage(*problem);
  return tokenize(request);
}

ExitStatus detokenize_command(Arguments arguments) {
  TokenizeRequest request;
  CLI::App app("Turns a file of tokens back into text: byte for byte, unless the vocabulary normalizes texts.", "einc detokenize");
  app.add_option("TOKENS", request.input, "a file that einc tokenize wrote, or one in llm.c's format")->required();
  app.add_option("-o,--output", request.output, "the file of text; standard output by default");
  add_vocabulary_options(app, request.vocabulary);
  app.add_option("--dtype", request.dtype, "dtype of the tokens, where neither the file's header nor its name says it")
      ->check(one_of({"u16", "u32"}));
  if (auto status = parse_arguments(app, arguments)) return *status;
  if (const auto problem = contradiction(request.vocabulary)) return wrong_usage(*problem);
  if (kind_of(request.vocabulary) == TokenizerKind::characters && request.vocabulary.files.vocabulary.empty())
    return wrong_usage("--kind chars needs the vocabulary that einc tokenize wrote: --vocab chars.json");
  return detokenize(request);
}

}  // namespace einc
