// What can go wrong while running a program that is itself right: a bad data file, an index out of range, too little
// memory, a number that is no longer finite. What the runtime throws; the message is written for the user.
#pragma once
#include <cstdint>
#include <stdexcept>
#include <string>
#include <utility>

namespace einc {

// In the order of the exit statuses 3, 4 and 5.
enum class FailureKind { data, resource, numeric };

class RuntimeFailure : public std::runtime_error {
 public:
  RuntimeFailure(FailureKind kind, const std::string& message) : std::runtime_error(message), kind_(kind) {}
  FailureKind kind() const { return kind_; }

 private:
  FailureKind kind_;
};

// A position outside its table. Who knows where the positions come from can say so.
class IndexOutOfRange : public RuntimeFailure {
 public:
  // The tensor of positions, and which of its elements.
  IndexOutOfRange(const std::string& message, std::string tensor, int64_t element)
      : RuntimeFailure(FailureKind::data, message), positions(std::move(tensor)), at(element) {}
  const std::string positions;
  const int64_t at;
};

}  // namespace einc
