# SPDX-License-Identifier: Apache-2.0
# Run as a script: writes OUTPUT, a .cpp that defines `std::string_view einc::FUNCTION()`, declared in HEADER, as the text of FILE.
file(READ ${FILE} text)
string(LENGTH "${text}" size)
set(pieces "")
set(at 0)
while(at LESS size)  # a string literal has at most 65,536 characters in standard C++
  string(SUBSTRING "${text}" ${at} 16000 piece)
  string(APPEND pieces "    R\"EINC_TEXT(${piece})EINC_TEXT\"\n")
  math(EXPR at "${at} + 16000")
endwhile()
file(WRITE ${OUTPUT}.new
"// Generated from ${HEADER}'s text.
#include \"${HEADER}\"

std::string_view einc::${FUNCTION}() {
  return
${pieces}  ;
}
")
file(COPY_FILE ${OUTPUT}.new ${OUTPUT} ONLY_IF_DIFFERENT)
