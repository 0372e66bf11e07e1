// SPDX-License-Identifier: Apache-2.0
// Against the examples of FIPS 180-4 and, around the ends of blocks, Python's hashlib.
#include "runtime/base/sha256.h"

#include <doctest/doctest.h>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <string>

using namespace einc;

namespace {

std::string hex(const Sha256& digest) { return fmt::format("{:02x}", fmt::join(digest, "")); }

}  // namespace

TEST_CASE("SHA-256 as the standard computes it, in one part and in two") {
  CHECK(hex(sha256({"abc"})) == "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
  CHECK(hex(sha256({"abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq"})) ==
        "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1");
  struct Row {
    size_t length;
    const char* digest;
  };
  for (const auto& [length, digest] : {Row{0, "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"},
                                       Row{1, "ca358758f6d27e6cf45272937977a748fd88391db679ceda7dc7bf1f005ee879"},
                                       Row{55, "8aa994584139d128848eeebc4e815639ba5ab6e6e39574195a63ac4f14f7c43b"},
                                       Row{56, "ad574708f75c044c9b85de64cb568ee7711ff4f36448c6242f053ba8f6cc2b63"},
                                       Row{63, "280ed3e8ff1df845b2e7dfe6ac6cee817bef20e783cc65abc41b818b4d2fe076"},
                                       Row{64, "c6ab9724ade5b6a7a1edfffb12f3aa9181351355af8fd08c919952ad211339dd"},
                                       Row{65, "788367c73c7ddf4c53f65e68cc0d943e6227ab55b0e78ba63ace822b1c6301c0"},
                                       Row{119, "3d610547d68216dedf7435a4fb6260353911f6b3fd3f18805ddb8be285d726fe"},
                                       Row{120, "1f80156a804cb7862ad113e8200e9d74499723e7c7854d5f48776d3148e09656"},
                                       Row{1000, "5097e7d587352f5097062ae679f37bda5802d9f875aba14c8cb4d1a188ada179"}}) {
    CAPTURE(length);
    std::string bytes(length, '\0');
    for (size_t i = 0; i < length; ++i) bytes[i] = static_cast<char>(31 * i + 7);
    CHECK(hex(sha256({bytes})) == digest);
    const std::string_view all = bytes;
    for (size_t cut = 0; cut <= length; cut += 7) CHECK(hex(sha256({all.substr(0, cut), all.substr(cut)})) == digest);
  }
}
