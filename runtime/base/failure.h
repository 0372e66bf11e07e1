// SPDX-License-Identifier: Apache-2.0
// What can go wrong while running a program that is itself right: a bad data file, an index out of range, too little
// memory, a number that is no longer finite. What the runtime throws; the message is written for the user.
#pragma once
#include <cstdint>
#include <stdexcept>
#include <string>
#include <utility>

#include "runtime/base/iterations.h"

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

// Another process of the run that does not come to where this one waits for it. Who knows more of the place says so.
class LateProcess : public RuntimeFailure {
 public:
  static constexpr int64_t kUnknown = -1;  // which one it is
  LateProcess(int64_t rank, std::string place)
      : RuntimeFailure(FailureKind::resource, (rank == kUnknown ? std::string("a rank") : "rank " + std::to_string(rank)) +
                                                  " has not reached " + place + " in time (--timeout)"),
        rank_(rank),
        place_(std::move(place)) {}
  LateProcess at(std::string place) const { return {rank_, std::move(place)}; }
  LateProcess in(const std::string& whole) const { return {rank_, place_ + " of " + whole}; }

 private:
  int64_t rank_;
  std::string place_;
};

// An element that the run stops at: a position outside its table, a divisor that is 0. Who knows where it comes from can say so.
class FaultyElement : public RuntimeFailure {
 public:
  // The tensor of positions or divisors, and which of its elements. In iterations of scans that is an element of a slice: which one of the
  // whole tensor remains open.
  FaultyElement(const std::string& message, std::string tensor, int64_t element, std::span<const int64_t> iterations = {})
      : RuntimeFailure(FailureKind::data, message + describe_iterations(iterations)),
        positions(iterations.empty() ? std::move(tensor) : ""),
        at(iterations.empty() ? element : 0) {}
  const std::string positions;
  const int64_t at;
};

}  // namespace einc
