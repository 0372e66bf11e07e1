# SPDX-License-Identifier: Apache-2.0
# What `cmake --install` gives: the command, and three libraries for find_package(einc). einc::runtime holds what compiled programs
# need; einc::einc adds the compiler, and LLVM's shared library with it. Each is one archive of the folders' objects. einc::c is a shared
# library for C and every language that calls it; nothing but LLVM's and the system's libraries stands behind it.
include(GNUInstallDirs)
include(CMakePackageConfigHelpers)

# einc_package(target exported_name archive FOLDER_LIBRARIES...)
function(einc_package target exported archive)
  set(objects)
  foreach(library IN LISTS ARGN)
    list(APPEND objects $<TARGET_OBJECTS:${library}>)
  endforeach()
  add_library(${target} STATIC ${objects})
  add_library(einc::${exported} ALIAS ${target})
  set_target_properties(${target} PROPERTIES OUTPUT_NAME ${archive} EXPORT_NAME ${exported} LINKER_LANGUAGE CXX
                        ARCHIVE_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/package)
  target_compile_features(${target} INTERFACE cxx_std_20)
  target_include_directories(${target} INTERFACE $<INSTALL_INTERFACE:${CMAKE_INSTALL_INCLUDEDIR}>)
  install(TARGETS ${target} EXPORT einc_${exported}_targets ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR})
  install(EXPORT einc_${exported}_targets NAMESPACE einc:: FILE einc_${exported}.cmake DESTINATION ${CMAKE_INSTALL_LIBDIR}/cmake/einc)
endfunction()

einc_package(einc_package_runtime runtime einc_runtime einc_base einc_runtime einc_data)
target_link_libraries(einc_package_runtime INTERFACE fmt::fmt utf8proc xxhash Threads::Threads ZLIB::ZLIB pcre2-8 ${CMAKE_DL_LIBS})
einc_package(einc_package_einc einc einc einc_dsl einc_symbolic einc_ir einc_passes einc_elaborate einc_kernels einc_context einc_cost einc_llvm
             einc_codegen_cuda einc_pipeline einc_api)
target_link_libraries(einc_package_einc INTERFACE einc_package_runtime)

set(EINC_LLVM_FOLDER "")
if(EINC_WITH_LLVM)
  target_link_libraries(einc_package_einc INTERFACE $<INSTALL_INTERFACE:einc::llvm>)
  set(EINC_LLVM_FOLDER ${LLVM_LIBRARY_DIRS})
endif()

target_include_directories(einc_c INTERFACE $<INSTALL_INTERFACE:${CMAKE_INSTALL_INCLUDEDIR}>)
add_library(einc::c ALIAS einc_c)
install(TARGETS einc_c EXPORT einc_c_targets LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR})
install(EXPORT einc_c_targets NAMESPACE einc:: FILE einc_c.cmake DESTINATION ${CMAKE_INSTALL_LIBDIR}/cmake/einc)

file(GLOB runtime_headers ${CMAKE_SOURCE_DIR}/runtime/include/einc/*.h)
list(FILTER runtime_headers EXCLUDE REGEX "/dtype\\.h$")
file(GLOB compiler_headers ${CMAKE_SOURCE_DIR}/compiler/include/einc/*.h)
install(FILES ${runtime_headers} ${compiler_headers} ${CMAKE_SOURCE_DIR}/runtime/base/dtype.h
        ${CMAKE_BINARY_DIR}/include/einc/version.h DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}/einc)
install(TARGETS einc RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR})
configure_package_config_file(cmake/eincConfig.cmake.in ${CMAKE_BINARY_DIR}/eincConfig.cmake
                              INSTALL_DESTINATION ${CMAKE_INSTALL_LIBDIR}/cmake/einc PATH_VARS CMAKE_INSTALL_BINDIR)
write_basic_package_version_file(${CMAKE_BINARY_DIR}/eincConfigVersion.cmake COMPATIBILITY SameMinorVersion)
install(FILES ${CMAKE_BINARY_DIR}/eincConfig.cmake ${CMAKE_BINARY_DIR}/eincConfigVersion.cmake
        DESTINATION ${CMAKE_INSTALL_LIBDIR}/cmake/einc)

install(DIRECTORY ${CMAKE_SOURCE_DIR}/examples DESTINATION ${CMAKE_INSTALL_DATADIR}/einc PATTERN __pycache__ EXCLUDE)
install(FILES ${CMAKE_SOURCE_DIR}/README.md ${CMAKE_SOURCE_DIR}/CHANGELOG.md DESTINATION ${CMAKE_INSTALL_DOCDIR})
install(FILES ${CMAKE_SOURCE_DIR}/LICENSE DESTINATION ${CMAKE_INSTALL_DOCDIR} RENAME copyright)
if(EINC_JEMALLOC)  # its licence asks for it
  install(FILES /usr/share/doc/libjemalloc-dev/copyright DESTINATION ${CMAKE_INSTALL_DOCDIR} RENAME copyright.jemalloc OPTIONAL)
endif()

# `scripts/package`: a Debian package, whose dependencies on shared libraries are read off the binaries, and a tarball that runs where it is
# unpacked, given the same libraries.
set(CPACK_GENERATOR DEB TGZ)
set(CPACK_PACKAGE_NAME einc)
set(CPACK_PACKAGE_CONTACT "The einc developers")
set(CPACK_PACKAGE_DESCRIPTION_SUMMARY "compiler for tensor programs with named axes")
set(CPACK_PACKAGE_DESCRIPTION "Reads tensor programs in the spelling of einops, proves their shapes, differentiates them, tells exactly what
they cost, and compiles them for this processor or an NVIDIA GPU. With libraries for C and C++.")
set(CPACK_RESOURCE_FILE_LICENSE ${CMAKE_SOURCE_DIR}/LICENSE)
set(CPACK_PACKAGE_FILE_NAME einc-${PROJECT_VERSION}-${CMAKE_SYSTEM_NAME}-${CMAKE_SYSTEM_PROCESSOR})
set(CPACK_STRIP_FILES ON)
set(CPACK_DEBIAN_FILE_NAME DEB-DEFAULT)
set(CPACK_DEBIAN_PACKAGE_SECTION devel)
set(CPACK_DEBIAN_PACKAGE_SHLIBDEPS ON)
set(CPACK_DEBIAN_PACKAGE_GENERATE_SHLIBS ON)
set(CPACK_DEBIAN_PACKAGE_RECOMMENDS "libfmt-dev, libpcre2-dev, libutf8proc-dev, libxxhash-dev, zlib1g-dev")  # to link einc::einc and einc::runtime
include(CPack)
