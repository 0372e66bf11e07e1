// SPDX-License-Identifier: Apache-2.0
#include "tests/support/run_on_terminal.h"

#include <fcntl.h>
#include <pty.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <stdexcept>

namespace einc::test {
namespace {

[[noreturn]] void become_einc_on(int terminal, std::vector<char*>& words) {
  const int nothing = open("/dev/null", O_RDONLY);
  if (nothing < 0 || dup2(nothing, STDIN_FILENO) < 0 || dup2(terminal, STDOUT_FILENO) < 0 || dup2(terminal, STDERR_FILENO) < 0) _exit(126);
  unsetenv("COLUMNS");
  unsetenv("NO_COLOR");
  setenv("TERM", "xterm", 1);
  execv(words[0], words.data());
  _exit(127);
}

// Without what begins with an escape and ends with a letter.
std::string without_escapes(const std::string& text) {
  std::string plain;
  for (size_t i = 0; i < text.size(); ++i) {
    if (text[i] != '\x1b') {
      plain += text[i];
      continue;
    }
    while (i + 1 < text.size() && std::isalpha(static_cast<unsigned char>(text[++i])) == 0) {
    }
  }
  return plain;
}

}  // namespace

Shown run_on_terminal(const std::vector<std::string>& arguments, int columns) {
  std::string binary = EINC_BINARY;
  std::vector<std::string> copies = arguments;
  std::vector<char*> words{binary.data()};
  for (std::string& argument : copies) words.push_back(argument.data());
  words.push_back(nullptr);
  int ours = -1, theirs = -1;
  winsize size{24, static_cast<unsigned short>(columns), 0, 0};
  if (openpty(&ours, &theirs, nullptr, nullptr, &size) != 0) throw std::runtime_error("no pseudo terminal");
  const pid_t child = fork();
  if (child < 0) throw std::runtime_error("fork failed");
  if (child == 0) {
    close(ours);
    become_einc_on(theirs, words);
  }
  close(theirs);
  std::string all;
  char piece[4096];
  for (ssize_t count; (count = read(ours, piece, sizeof piece)) > 0;) all.append(piece, static_cast<size_t>(count));
  close(ours);
  int state = 0;
  waitpid(child, &state, 0);
  Shown shown;
  if (WIFEXITED(state)) shown.status = WEXITSTATUS(state);
  const std::string plain = without_escapes(all);
  for (size_t at = 0; at < plain.size();) {
    const size_t end = std::min(plain.find_first_of("\r\n", at), plain.size());
    if (end > at) shown.drawn.push_back(plain.substr(at, end - at));
    at = end + 1;
  }
  return shown;
}

size_t columns_of(const std::string& text) {
  return static_cast<size_t>(
      std::count_if(text.begin(), text.end(), [](char c) { return (static_cast<unsigned char>(c) & 0xC0) != 0x80; }));
}

}  // namespace einc::test
