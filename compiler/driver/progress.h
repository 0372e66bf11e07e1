// SPDX-License-Identifier: Apache-2.0
// How far a command is that takes a while: one line of a terminal, drawn over and over by a thread of its own, as what takes long may
// not be interrupted to draw. It appears after two seconds and is wiped at the end. Without a terminal nothing happens.
#pragma once
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <mutex>
#include <string>
#include <thread>

namespace einc {

class Progress {
 public:
  explicit Progress(std::string command);
  ~Progress();
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;

  // What is done now, and how much of it is done of how much: from this the time left follows. 0 of 0: nobody knows.
  void show(std::string doing, int64_t done = 0, int64_t all = 0);

 private:
  void draw_again_and_again();
  std::string line() const;

  std::string command_, doing_;
  int64_t done_ = 0, all_ = 0;
  std::chrono::steady_clock::time_point begin_, counted_from_;
  bool ended_ = false;
  std::mutex mutex_;
  std::condition_variable end_;
  std::thread thread_;
};

}  // namespace einc
