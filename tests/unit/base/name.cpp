// SPDX-License-Identifier: Apache-2.0
// Interned strings: one handle per text, from any thread, for the life of the process.
#include "runtime/base/name.h"

#include <doctest/doctest.h>

#include <thread>
#include <unordered_set>
#include <vector>

using namespace einc;

TEST_CASE("name: equal texts are one name") {
  const std::string text = "name_test.batch";
  const Name a(text), b("name_test.batch"), c(std::string_view("name_test.batch.rest").substr(0, text.size()));
  CHECK(a == b);
  CHECK(a == c);
  CHECK(a.id() == c.id());
  CHECK(a.str() == text);
  CHECK(&a.str() == &b.str());
  CHECK_FALSE(a == Name("name_test.Batch"));
  CHECK(std::hash<Name>()(a) == std::hash<Name>()(b));
}

TEST_CASE("name: the empty name") {
  CHECK(Name().empty());
  CHECK(Name("").empty());
  CHECK(Name() == Name(""));
  CHECK(Name().str().empty());
  CHECK_FALSE(Name(" ").empty());
}

TEST_CASE("name: any bytes, any length") {
  const std::string zeros("a\0b", 3), longer(100000, 'x');
  CHECK(Name(zeros).str() == zeros);
  CHECK_FALSE(Name(zeros) == Name("a"));
  CHECK(Name(longer).str() == longer);
  CHECK(Name("größe").str() == "größe");
}

TEST_CASE("name: texts stay where they are while the table grows") {
  const Name first("name_test.first");
  const std::string* const at = &first.str();
  std::unordered_set<Name> all{first};
  for (int i = 0; i < 20000; ++i) all.insert(Name("name_test.grow" + std::to_string(i)));
  CHECK(all.size() == 20001);
  CHECK(&first.str() == at);
  CHECK(*at == "name_test.first");
}

TEST_CASE("name: threads agree") {
  constexpr int kThreads = 8, kNames = 2000;
  std::vector<std::vector<Name>> names(kThreads);
  std::vector<std::thread> threads;
  for (int t = 0; t < kThreads; ++t)
    threads.emplace_back([&mine = names[static_cast<size_t>(t)], t] {
      mine.resize(kNames);
      for (int i = 0; i < kNames; ++i) {
        const int k = (i * 37 + t * 501) % kNames;  // each thread in an order of its own
        mine[static_cast<size_t>(k)] = Name("name_test.shared" + std::to_string(k));
      }
    });
  for (std::thread& t : threads) t.join();
  for (const auto& mine : names) CHECK(mine == names.front());
  for (int i = 0; i < kNames; ++i) CHECK(names.front()[static_cast<size_t>(i)].str() == "name_test.shared" + std::to_string(i));
}
