// SPDX-License-Identifier: Apache-2.0
// The one exception that this library throws.
#pragma once
#include <cstdint>
#include <stdexcept>
#include <string>
#include <vector>

namespace einc {

// Whose fault it is. The values are the exit statuses of the command line.
enum class ErrorKind : uint8_t {
  program = 1,   // the program's text is wrong: see Error::diagnostics()
  usage = 2,     // a call is wrong: no such tensor, another dtype or shape, a dim without a value
  data = 3,      // a file or a value is wrong: an index outside its table, a damaged file
  resource = 4,  // no memory, no file, or a processor without what the code needs
  numeric = 5,   // a number is no longer finite
  internal = 70  // a defect of einc: please report it
};

class Error : public std::runtime_error {
 public:
  // A place in a program's text. Lines and columns count from 1; `end_line` and `end_column` are those just behind the place.
  // Text that einc made itself has no place: `file` is empty and the numbers are 0.
  struct Place {
    std::string file;
    uint32_t line = 0, column = 0, end_line = 0, end_column = 0;
  };
  struct Label {
    Place place;
    std::string text;
  };
  struct Diagnostic {
    bool is_warning = false;
    std::string code;     // "E0301"
    std::string message;  // one line
    Place place;
    std::vector<Label> labels;  // what other places have to do with it
    std::string hint;           // what to write instead; empty: none
  };

  Error(ErrorKind kind, const std::string& message, std::vector<Diagnostic> diagnostics = {})
      : std::runtime_error(message), kind_(kind), diagnostics_(std::move(diagnostics)) {}

  ErrorKind kind() const { return kind_; }
  // All that is wrong with a program, in the order of its text; what() shows the same with the lines and carets under them.
  const std::vector<Diagnostic>& diagnostics() const { return diagnostics_; }

 private:
  ErrorKind kind_;
  std::vector<Diagnostic> diagnostics_;
};

}  // namespace einc
