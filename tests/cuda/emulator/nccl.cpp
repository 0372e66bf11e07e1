// SPDX-License-Identifier: Apache-2.0
// NCCL between processes of one machine: messages are files in a folder that $EINC_EMULATED_NCCL names, one for each, renamed into place
// when they are whole. What NCCL would not notice is an error here: a count or type that differs between sender and receiver, memory that
// is gone, and messages that nobody takes.
#include <signal.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <map>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "gpu.h"
#include "runtime/cuda/nccl_api.h"

namespace einc::cuda {

struct NcclCommObject {
  std::filesystem::path folder;
  int ranks = 0, rank = 0;
  std::map<std::pair<int, int>, uint64_t> messages{};  // so many from one to another
  std::atomic<bool> aborted = false;
};

}  // namespace einc::cuda

namespace emulator {
namespace {

namespace fs = std::filesystem;
using namespace einc::cuda;

constexpr Result kNcclSystem = 2, kNcclInvalid = 4, kNcclRemote = 6;
constexpr std::chrono::microseconds kLook{200};

struct Header {
  uint64_t count = 0;
  int type = 0;
};
struct Message {
  enum class Way { send, receive } way;
  uint64_t memory;
  Header header;
  int peer;
  NcclComm comm;
  Stream stream;
};
thread_local int groups = 0;
thread_local std::vector<Message> gathered;

fs::path file_of(const NcclCommObject& comm, int from, int to, uint64_t number) {
  return comm.folder / (std::to_string(from) + "-" + std::to_string(to) + "-" + std::to_string(number));
}

void write_whole(const fs::path& file, const Header& header, const void* bytes) {
  const fs::path part = file.string() + ".part";
  std::ofstream out(part, std::ios::binary);
  out.write(reinterpret_cast<const char*>(&header), sizeof header);
  out.write(static_cast<const char*>(bytes), static_cast<std::streamsize>(header.count));
  out.close();
  fs::rename(part, file);
}

fs::path process_file(const NcclCommObject& comm, int rank) { return comm.folder / ("process-" + std::to_string(rank)); }

bool is_alive(const NcclCommObject& comm, int rank) {
  std::ifstream in(process_file(comm, rank));
  pid_t process = 0;
  return !(in >> process) || kill(process, 0) == 0;
}

Result take(const Message& m, const fs::path& file) {
  while (!fs::exists(file)) {
    if (m.comm->aborted) return 0;  // as a kernel that NCCL has told to end
    std::this_thread::sleep_for(kLook);
  }
  std::ifstream in(file, std::ios::binary);
  Header sent;
  in.read(reinterpret_cast<char*>(&sent), sizeof sent);
  if (sent.count != m.header.count || sent.type != m.header.type)
    return fail(kLaunchFailed, "NCCL: rank " + std::to_string(m.peer) + " sends " + std::to_string(sent.count) + " elements of type " +
                                   std::to_string(sent.type) + ", and " + std::to_string(m.header.count) + " of type " +
                                   std::to_string(m.header.type) + " are received");
  in.read(reinterpret_cast<char*>(m.memory), static_cast<std::streamsize>(sent.count));
  in.close();
  fs::remove(file);
  return 0;
}

// All that is sent is on its way before anything is waited for.
Result carry_out(const std::vector<Message>& list) {
  for (const Message& m : list)
    if (const Result result = check_memory(m.memory, m.header.count); result != 0) return fail(result, "NCCL: memory that is not there");
  for (const Message& m : list)
    if (m.way == Message::Way::send)
      write_whole(file_of(*m.comm, m.comm->rank, m.peer, m.comm->messages[{m.comm->rank, m.peer}]++), m.header,
                  reinterpret_cast<const void*>(m.memory));
  for (const Message& m : list)
    if (m.way == Message::Way::receive)
      if (const Result result = take(m, file_of(*m.comm, m.peer, m.comm->rank, m.comm->messages[{m.peer, m.comm->rank}]++)); result != 0)
        return result;
  return 0;
}

Result add(const Message& message) {
  if (message.peer < 0 || message.peer >= message.comm->ranks || message.header.type != kNcclBytes) return kNcclInvalid;
  gathered.push_back(message);
  return groups > 0 ? 0 : kNcclInvalid;
}

}  // namespace
}  // namespace emulator

using namespace einc::cuda;
using emulator::Call;
using emulator::Message;

extern "C" {

Result ncclGetUniqueId(NcclId* id) {
  *id = {};
  const char* given = std::getenv("NCCL_COMM_ID");
  std::strncpy(id->bytes, given ? given : std::to_string(getpid()).c_str(), sizeof id->bytes - 1);
  return 0;
}

Result ncclCommInitRank(NcclComm* comm, int ranks, NcclId id, int rank) {
  const char* folder = std::getenv("EINC_EMULATED_NCCL");
  if (!folder || rank < 0 || rank >= ranks) return emulator::kNcclInvalid;
  *comm = new NcclCommObject{std::filesystem::path(folder) / id.bytes, ranks, rank};
  std::filesystem::create_directories((*comm)->folder);
  const std::filesystem::path own = emulator::process_file(**comm, rank), part = own.string() + ".part";
  std::ofstream(part) << getpid();
  std::filesystem::rename(part, own);
  for (int other = 0; other < ranks; ++other)
    while (!std::filesystem::exists(emulator::process_file(**comm, other))) std::this_thread::sleep_for(emulator::kLook);
  return 0;
}

// Whoever still waits for messages of this process has them: its end is no failure.
Result ncclCommDestroy(NcclComm comm) {
  std::filesystem::remove(emulator::process_file(*comm, comm->rank));
  return 0;
}

Result ncclCommAbort(NcclComm comm) {
  comm->aborted = true;
  return 0;
}

Result ncclCommGetAsyncError(NcclComm comm, Result* error) {
  *error = 0;
  for (int other = 0; other < comm->ranks; ++other)
    if (!emulator::is_alive(*comm, other)) *error = emulator::kNcclRemote;
  return 0;
}

const char* ncclGetErrorString(Result error) {
  return error == emulator::kNcclRemote    ? "remote process exited or there was a network error"
         : error == emulator::kNcclInvalid ? "invalid argument"
                                           : "unhandled error";
}

Result ncclGroupStart() {
  ++emulator::groups;
  return 0;
}

Result ncclGroupEnd() {
  const Call call("ncclGroupEnd");
  if (--emulator::groups > 0) return 0;
  const std::vector<Message> list = std::exchange(emulator::gathered, {});
  if (list.empty()) return 0;
  const Result result = emulator::give(list.front().stream, [list] { return emulator::carry_out(list); });
  return result == 0 ? 0 : emulator::kNcclSystem;
}

Result ncclSend(const void* from, size_t count, int type, int peer, NcclComm comm, Stream stream) {
  return emulator::add({Message::Way::send, reinterpret_cast<uint64_t>(from), {count, type}, peer, comm, stream});
}

Result ncclRecv(void* to, size_t count, int type, int peer, NcclComm comm, Stream stream) {
  return emulator::add({Message::Way::receive, reinterpret_cast<uint64_t>(to), {count, type}, peer, comm, stream});
}

}  // extern "C"
