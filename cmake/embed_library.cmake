# SPDX-License-Identifier: Apache-2.0
# Run as a script: writes OUTPUT, a .cpp that holds every file of FOLDER/*.ein as text, so that the binary needs no folder.
file(GLOB files ${FOLDER}/*.ein)
list(SORT files)
set(rows "")
foreach(file IN LISTS files)
  get_filename_component(name ${file} NAME_WE)
  file(READ ${file} text)
  string(LENGTH "${text}" size)
  string(APPEND rows "    {\"${name}\", R\"EINC_TEXT(${text})EINC_TEXT\"},\n")
endforeach()
file(WRITE ${OUTPUT}.new
"// Generated from dsl/stdlib: the bundled library's text.
#include \"compiler/elaborate/elaborate.h\"

namespace einc {
namespace {
struct Bundled { std::string_view name, text; };
constexpr Bundled kBundled[] = {
${rows}};
}  // namespace

std::optional<std::string_view> bundled_library(std::string_view name) {
  for (const Bundled& file : kBundled)
    if (file.name == name) return file.text;
  return std::nullopt;
}

}  // namespace einc
")
file(COPY_FILE ${OUTPUT}.new ${OUTPUT} ONLY_IF_DIFFERENT)
