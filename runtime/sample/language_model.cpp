// SPDX-License-Identifier: Apache-2.0
#include "runtime/sample/language_model.h"

#include <algorithm>

namespace einc {
namespace {

// A session of a program that reads `length` tokens at once.
class ContextReader {
 public:
  ContextReader(Session& session, const ModelTensors& tensors) : session_(session), tensors_(tensors) {
    length_ = session.input(tensors.tokens).shape().back();
  }

  int64_t length() const { return length_; }

  void read(std::span<const int32_t> text, int64_t position) {
    std::vector<int32_t> padded(text.begin(), text.end());
    padded.resize(static_cast<size_t>(length_), 0);
    set(tensors_.tokens, padded);
    if (!tensors_.position.empty()) set(tensors_.position, {static_cast<int32_t>(position)});
    session_.run();
  }

  std::vector<double> logits(int64_t place) const {
    const TensorView all = session_.output(tensors_.logits);
    const int64_t vocabulary = all.shape().back(), bytes = vocabulary * bytes_of(all.dtype());
    return TensorView(all.dtype(), {vocabulary}, static_cast<const std::byte*>(all.data()) + place * bytes).to_doubles();
  }

 private:
  void set(const std::string& name, const std::vector<int32_t>& values) {
    const DType dtype = session_.input(name).dtype();
    if (dtype == DType::i64)
      session_.set(name, std::vector<int64_t>(values.begin(), values.end()));
    else if (dtype == DType::u16)
      session_.set(name, std::vector<uint16_t>(values.begin(), values.end()));
    else if (dtype == DType::u8)
      session_.set(name, std::vector<uint8_t>(values.begin(), values.end()));
    else
      session_.set(name, values);
  }

  Session& session_;
  ModelTensors tensors_;
  int64_t length_;
};

class WithoutCache : public LanguageModel {
 public:
  WithoutCache(Session& session, const ModelTensors& tensors) : reader_(session, tensors) {}
  int64_t context() const override { return reader_.length(); }
  std::vector<double> logits_after(std::span<const int32_t> text) override {
    reader_.read(text, 0);
    return reader_.logits(static_cast<int64_t>(text.size()) - 1);
  }

 private:
  ContextReader reader_;
};

class WithCache : public LanguageModel {
 public:
  WithCache(Session& several, Session& one, const ModelTensors& tensors, int64_t context)
      : several_(several, tensors), one_(one, tensors), context_(context) {}
  int64_t context() const override { return context_; }

  std::vector<double> logits_after(std::span<const int32_t> text) override {
    const auto size = static_cast<int64_t>(text.size());
    // The last token is read in any case, for its logits.
    auto place = std::min<int64_t>(std::mismatch(text.begin(), text.end(), read_.begin(), read_.end()).first - text.begin(), size - 1);
    std::vector<double> logits;
    while (place < size) {
      const bool together = size - place > 1 && place + several_.length() <= context_;
      ContextReader& reader = together ? several_ : one_;
      const int64_t count = std::min(reader.length(), size - place);
      reader.read(text.subspan(static_cast<size_t>(place), static_cast<size_t>(count)), place);
      place += count;
      if (place == size) logits = reader.logits(count - 1);
    }
    read_.assign(text.begin(), text.end());
    return logits;
  }

 private:
  ContextReader several_, one_;
  int64_t context_;
  std::vector<int32_t> read_;  // what the cache holds, from position 0
};

}  // namespace

std::unique_ptr<LanguageModel> model_without_cache(Session& session, ModelTensors tensors) {
  return std::make_unique<WithoutCache>(session, tensors);
}

std::unique_ptr<LanguageModel> model_with_cache(Session& several, Session& one, ModelTensors tensors, int64_t context) {
  several.share(one);
  return std::make_unique<WithCache>(several, one, tensors, context);
}

}  // namespace einc
