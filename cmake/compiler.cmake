# SPDX-License-Identifier: Apache-2.0
# Warnings, sanitizers and the compiler cache, in one interface target.
# -Wno-restrict: g++ 12 warns about `"(" + text` in its own string header (GCC bug 105651); -Wno-stringop-overread: likewise where a boost
# small_vector is returned by value. clang calls the value of a capture that keeps a structured binding's name its shadow, and takes
# std::stable_sort of g++ 12's library for a use of what C++17 deprecates.
add_library(einc_flags INTERFACE)
target_compile_options(einc_flags INTERFACE -Wall -Wextra -Wpedantic -Werror -Wswitch -Wshadow -fno-math-errno -ffp-contract=off
                       $<$<CXX_COMPILER_ID:GNU>:-Wno-restrict;-Wno-stringop-overread>
                       $<$<CXX_COMPILER_ID:Clang>:-Wno-shadow;-Wno-deprecated-declarations>)
if(EINC_SANITIZE)
  # -Wno-maybe-uninitialized, -Wno-mismatched-new-delete: g++ 12 sees ghosts behind instrumented code.
  # Checks of each pointer that is followed take half of the compiler's time (45 s of a group of sources, 25 without; Zen 3): a null one ends
  # the process as it is, and AddressSanitizer tells where.
  target_compile_options(einc_flags INTERFACE -fsanitize=address,undefined -fno-sanitize-recover=undefined -fno-omit-frame-pointer
                         -fno-sanitize=null,alignment,object-size,vptr,pointer-overflow,nonnull-attribute,returns-nonnull-attribute
                         $<$<CXX_COMPILER_ID:GNU>:-Wno-maybe-uninitialized;-Wno-mismatched-new-delete>)
  target_link_options(einc_flags INTERFACE -fsanitize=address,undefined)
endif()
if(EINC_FUZZ)
  target_compile_options(einc_flags INTERFACE -fsanitize=fuzzer-no-link,address,undefined -fno-sanitize-recover=undefined -fno-omit-frame-pointer)
  target_link_options(einc_flags INTERFACE -fsanitize=address,undefined)
endif()
find_program(EINC_CCACHE ccache)
if(EINC_CCACHE)
  # Without the first, ccache gives nothing for sources with precompiled headers; the second is what it asks for beside it.
  set(CMAKE_CXX_COMPILER_LAUNCHER env CCACHE_SLOPPINESS=pch_defines,time_macros ${EINC_CCACHE})
endif()

# What most sources include, parsed once: parsing is a fifth of the time of eight sources together, two fifths in driver/ (GCC 12, -O3). A
# target with other flags than einc_base's has headers of its own, or none. scripts/alone finds a source that lacks an include.
set(EINC_COMMON_HEADERS <algorithm> <array> <cmath> <cstdint> <functional> <map> <memory> <optional> <span> <string> <string_view>
    <unordered_map> <utility> <variant> <vector> <fmt/format.h>)
function(einc_precompile target)
  if(target STREQUAL einc_base OR ARGN)
    target_precompile_headers(${target} PRIVATE ${EINC_COMMON_HEADERS} ${ARGN})
  else()
    target_precompile_headers(${target} REUSE_FROM einc_base)
  endif()
endfunction()
