// SPDX-License-Identifier: Apache-2.0
// NVRTC as the host's C++ compiler: the text that NVRTC would get, with cuda_host.h in front and behind it a way to call each kernel.
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <regex>
#include <set>
#include <sstream>
#include <string>
#include <string_view>
#include <vector>

#include "emulator.h"
#include "gpu.h"
#include "kernel_file.h"

namespace einc::cuda {

struct NvrtcProgramObject {
  std::string source, log, code;
  bool makes_ptx = false;
};

}  // namespace einc::cuda

namespace emulator {
namespace {

namespace fs = std::filesystem;

constexpr Result kInvalidInput = 3, kInvalidOption = 5, kCompilation = 6;
int newest_arch = 120;
constexpr const char* kFlags = EINC_EMULATED_FLAGS;

std::string read_file(const fs::path& path) {
  std::ifstream in(path, std::ios::binary);
  std::ostringstream text;
  text << in.rdbuf();
  return text.str();
}

// Everything that a compiled text follows from besides itself, as a version number.
int version() {
  std::string text = kFlags;
  for (const char* header : {"emulated_thread.h", "cuda_host.h", "host_math.h", "host_tiles.h"})
    text += read_file(fs::path(EINC_EMULATOR_SOURCES) / header);
  uint32_t hash = 2166136261u;
  for (const char c : text) hash = (hash ^ static_cast<unsigned char>(c)) * 16777619u;
  return static_cast<int>(hash >> 1);
}

std::string calls_of(const std::string& source) {
  static const std::regex kernel(
      R"(__global__\s+(?:__launch_bounds__\s*\([^)]*\)\s+)?void\s+(?:__launch_bounds__\s*\([^)]*\)\s+)?(\w+)\s*\()");
  std::string text;
  std::set<std::string> seen;
  for (std::sregex_iterator it(source.begin(), source.end(), kernel), end; it != end; ++it) {
    const std::string name = (*it)[1];
    if (!seen.insert(name).second) continue;
    text += "extern \"C\" void einc_call_" + name + "(void** a) { emu_call(" + name + ", a); }\n";
    text += "extern \"C\" const int* einc_bytes_" + name + "() { return emu_bytes(" + name + "); }\n";
  }
  return text;
}

Result compile(einc::cuda::NvrtcProgramObject& program) {
  std::string folder = (fs::temp_directory_path() / "einc-emulated-XXXXXX").string();
  if (!mkdtemp(folder.data())) return kInvalidInput;
  const fs::path base = folder;
  std::ofstream(base / "kernels.cpp") << "#include <cuda_host.h>\n#line 1 \"einc.cu\"\n"
                                      << program.source << "\n#line 1 \"calls\"\n"
                                      << calls_of(program.source);
  const std::string command = std::string(EINC_HOST_COMPILER) + " " + kFlags + " " + (base / "kernels.cpp").string() + " -o " +
                              (base / "kernels.so").string() + " >" + (base / "log").string() + " 2>&1";
  const int status = std::system(command.c_str());
  program.log = read_file(base / "log");
  if (status == 0) program.code = write_kernel_file(read_file(base / "kernels.so"));
  std::error_code ignored;
  fs::remove_all(base, ignored);
  return status == 0 ? 0 : kCompilation;
}

Result give_text(const std::string& text, char* to) {
  std::memcpy(to, text.data(), text.size());
  return 0;
}

std::vector<int> archs() {
  std::vector<int> known{80, 86, 89, 90, 100, 120};
  std::erase_if(known, [](int arch) { return arch > newest_arch; });
  return known;
}

}  // namespace

void set_newest_arch(int arch) { newest_arch = arch; }

}  // namespace emulator

using namespace einc::cuda;
using emulator::Call;

extern "C" {

Result nvrtcVersion(int* major, int* minor) {
  static const int version = emulator::version();
  *major = 0;
  *minor = version;
  return 0;
}

const char* nvrtcGetErrorString(Result error) { return error == 0 ? "success" : "the emulated NVRTC failed"; }

Result nvrtcCreateProgram(NvrtcProgram* program, const char* source, const char*, int, const char* const*, const char* const*) {
  const Call call("nvrtcCreateProgram");
  *program = new NvrtcProgramObject{source, {}, {}};
  return 0;
}

Result nvrtcDestroyProgram(NvrtcProgram* program) {
  delete *program;
  *program = nullptr;
  return 0;
}

Result nvrtcGetNumSupportedArchs(int* count) {
  *count = static_cast<int>(emulator::archs().size());
  return 0;
}

Result nvrtcGetSupportedArchs(int* archs) {
  std::ranges::copy(emulator::archs(), archs);
  return 0;
}

// Not under the lock: several threads compile at once.
Result nvrtcCompileProgram(NvrtcProgram program, int count, const char* const* options) {
  { const Call call("nvrtcCompileProgram"); }
  for (int i = 0; i < count; ++i) {
    const std::string_view option = options[i];
    program->makes_ptx = program->makes_ptx || option.starts_with("--gpu-architecture=compute_");
    if (option.starts_with("--gpu-architecture=") && std::atoi(option.data() + option.find('_') + 1) > emulator::newest_arch)
      return program->log = "an arch that is too new", emulator::kInvalidOption;
  }
  return emulator::compile(*program);
}

Result nvrtcGetProgramLogSize(NvrtcProgram program, size_t* bytes) {
  *bytes = program->log.size();
  return 0;
}

Result nvrtcGetProgramLog(NvrtcProgram program, char* log) { return emulator::give_text(program->log, log); }

Result nvrtcGetCUBINSize(NvrtcProgram program, size_t* bytes) {
  *bytes = program->code.size();
  return 0;
}

Result nvrtcGetCUBIN(NvrtcProgram program, char* cubin) { return emulator::give_text(program->code, cubin); }

// The emulator has no PTX: the code where a driver is to get it, else, for people, the text.
Result nvrtcGetPTXSize(NvrtcProgram program, size_t* bytes) {
  *bytes = (program->makes_ptx ? program->code : program->source).size();
  return 0;
}

Result nvrtcGetPTX(NvrtcProgram program, char* ptx) {
  const Call call("nvrtcGetPTX");
  return emulator::give_text(program->makes_ptx ? program->code : program->source, ptx);
}

}  // extern "C"
