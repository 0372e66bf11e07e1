// SPDX-License-Identifier: Apache-2.0
// Streams, events and graphs. Work that a stream is given waits until somebody waits for it: a program that reads too early sees nothing.
// A graph runs in any order that its dependencies allow: that of other streams than the captured one last, first, or shuffled.
#include <algorithm>
#include <deque>
#include <map>
#include <utility>
#include <vector>

#include "emulator.h"
#include "gpu.h"

namespace einc::cuda {

struct StreamObject {
  Context context = nullptr;
  std::deque<emulator::Work> queue;
  uint64_t given = 0, done = 0, last_epilogue = UINT64_MAX;
  GraphObject* capturing = nullptr;
  std::vector<size_t> last{};  // of the graph's nodes: what comes next depends on them
};
struct EventObject {
  bool has_time = true;
  Stream stream = nullptr;
  uint64_t place = 0;                  // how much of the stream comes before the event
  const GraphObject* graph = nullptr;  // that it was captured in
  std::vector<size_t> last{};
};
struct GraphNode {
  emulator::Work work;
  std::vector<size_t> after;
  bool aside = false;  // of another stream than the one whose capture was begun
};
struct GraphObject {
  Stream origin = nullptr;
  std::vector<Stream> joined{};
  std::vector<GraphNode> nodes{};
  bool broken = false;  // by what may not be done during a capture
};
struct GraphExecObject {
  std::vector<GraphNode> nodes;
};

}  // namespace einc::cuda

namespace emulator {
namespace {

using namespace einc::cuda;

float epilogue_milliseconds = 1;
Result broken = 0;                       // once a kernel failed nothing works any more
thread_local Stream captures = nullptr;  // the stream that this thread captures

Result drain(Stream stream, uint64_t until) {
  while (stream->done < until && !stream->queue.empty()) {
    const Work work = std::move(stream->queue.front());
    stream->queue.pop_front();
    ++stream->done;
    if (broken == 0) broken = work();
  }
  return broken;
}

// Nodes in an order that they allow, by the one that kernels' blocks run in: 0 and 1 take the captured stream's own as early and as late as
// may be, others shuffle.
std::vector<size_t> order_of(const std::vector<GraphNode>& nodes, unsigned order) {
  std::vector<size_t> done;
  std::vector<bool> is_done(nodes.size(), false);
  const auto ready = [&](size_t n) {
    return !is_done[n] && std::ranges::all_of(nodes[n].after, [&](size_t before) { return is_done[before]; });
  };
  while (done.size() < nodes.size()) {
    std::vector<size_t> next;
    for (size_t n = 0; n < nodes.size(); ++n)
      if (ready(n)) next.push_back(n);
    size_t taken = next[(order * 2654435761u + done.size() * 40503u) % next.size()];
    if (order < 2) {
      const auto wanted = std::ranges::find_if(next, [&](size_t n) { return nodes[n].aside == (order == 1); });
      taken = wanted == next.end() ? next.front() : *wanted;
    }
    is_done[taken] = true;
    done.push_back(taken);
  }
  return done;
}

// Whether all that was captured comes before what the captured stream would be given next.
bool is_joined(const GraphObject& graph) {
  std::vector<bool> before(graph.nodes.size(), false);
  for (const size_t n : graph.origin->last) before[n] = true;
  for (size_t n = graph.nodes.size(); n-- > 0;)
    for (const size_t other : graph.nodes[n].after) before[other] = before[other] || before[n];
  return std::ranges::all_of(before, [](bool is) { return is; });
}

}  // namespace

Result give(Stream stream, Work work) {
  if (const Result refused = needs_context(); refused != 0) return refused;
  if (!stream) return fail(kInvalidHandle, "work for no stream");
  if (stream->context != current_context()) return fail(kInvalidHandle, "work for a stream of another context");
  if (stream->capturing) {
    if (stream->capturing->broken) return fail(kCaptureBroken, "work for a stream whose capture is broken");
    GraphObject& graph = *stream->capturing;
    graph.nodes.push_back({std::move(work), std::exchange(stream->last, {graph.nodes.size()}), stream != graph.origin});
    return 0;
  }
  stream->queue.push_back(std::move(work));
  ++stream->given;
  return broken;
}

bool is_captured(Stream stream) { return stream && stream->capturing; }

Result unsafe_in_capture(const char* what) {
  if (captures) captures->capturing->broken = true;
  return captures ? fail(kWrongCapture, std::string(what) + " while a stream is captured") : needs_context();
}

void note_epilogue(Stream stream) { stream->last_epilogue = stream->given; }
void set_epilogue_milliseconds(float time) { epilogue_milliseconds = time; }
void recover() { broken = 0; }

}  // namespace emulator

using namespace einc::cuda;
using emulator::Call;

extern "C" {

Result cuStreamCreate(Stream* stream, unsigned) {
  const Call call("cuStreamCreate");
  if (const Result refused = emulator::needs_context(); refused != 0) return refused;
  *stream = new StreamObject;
  (*stream)->context = emulator::current_context();
  return 0;
}

Result cuStreamDestroy_v2(Stream stream) {
  const Call call("cuStreamDestroy_v2");
  if (const Result refused = emulator::needs_context(); refused != 0) return refused;
  const Result result = emulator::drain(stream, stream->given);
  delete stream;
  return result;
}

Result cuStreamSynchronize(Stream stream) {
  const Call call("cuStreamSynchronize");
  if (stream->capturing) stream->capturing->broken = true;
  if (stream->capturing) return emulator::fail(emulator::kWrongCapture, "a stream is waited for while it is captured");
  if (const Result refused = emulator::needs_context(); refused != 0) return refused;
  return emulator::drain(stream, stream->given);
}

Result cuEventCreate(Event* event, unsigned flags) {
  const Call call("cuEventCreate");
  if (const Result refused = emulator::needs_context(); refused != 0) return refused;
  *event = new EventObject{(flags & kEventWithoutTiming) == 0};
  return 0;
}

Result cuEventDestroy_v2(Event event) {
  const Call call("cuEventDestroy_v2");
  delete event;
  return 0;
}

Result cuEventRecord(Event event, Stream stream) {
  const Call call("cuEventRecord");
  event->graph = stream->capturing;
  event->last = stream->last;
  event->stream = stream;
  event->place = stream->given;
  return 0;
}

Result cuEventSynchronize(Event event) {
  const Call call("cuEventSynchronize");
  if (const Result refused = emulator::unsafe_in_capture("an event is waited for"); refused != 0) return refused;
  return event->stream ? emulator::drain(event->stream, event->place) : 0;
}

// It has no clock: all takes a millisecond, and a little more the more it is.
Result cuEventElapsedTime(float* milliseconds, Event begin, Event end) {
  const Call call("cuEventElapsedTime");
  for (const Event event : {begin, end}) {
    if (!event->stream || !event->has_time) return emulator::fail(emulator::kInvalidHandle, "the time of an event that has none");
    if (event->stream->done < event->place) return emulator::fail(emulator::kNotReady, "the time of an event that is to come");
  }
  const uint64_t epilogue = end->stream->last_epilogue, pieces = end->place > begin->place ? end->place - begin->place : 1;
  const bool has_epilogue = begin->place <= epilogue && epilogue < end->place;
  *milliseconds = (has_epilogue ? emulator::epilogue_milliseconds : 1) + 1e-3F * static_cast<float>(pieces - 1);
  return 0;
}

Result cuStreamWaitEvent(Stream stream, Event event, unsigned) {
  const Call call("cuStreamWaitEvent");
  if (stream && stream->capturing && event->graph != stream->capturing)
    return emulator::fail(emulator::kCaptureIsolated, "a captured stream waits for what is not captured with it");
  if (stream && event->graph) {
    GraphObject* graph = event->stream->capturing;
    if (graph != event->graph) return emulator::fail(emulator::kCaptureIsolated, "a stream waits for an event of a capture that is over");
    if (!std::exchange(stream->capturing, graph)) graph->joined.push_back(stream);
    for (const size_t n : event->last)
      if (std::ranges::find(stream->last, n) == stream->last.end()) stream->last.push_back(n);
    return 0;
  }
  return emulator::give(stream, [other = event->stream, place = event->place] { return other ? emulator::drain(other, place) : 0; });
}

Result cuStreamBeginCapture_v2(Stream stream, int) {
  const Call call("cuStreamBeginCapture_v2");
  if (stream->capturing) return emulator::fail(emulator::kWrongCapture, "a stream is captured twice");
  if (const Result refused = emulator::unsafe_in_capture("another one begins to be captured"); refused != 0) return refused;
  stream->capturing = new GraphObject{stream};
  stream->last.clear();
  emulator::captures = stream;
  return 0;
}

Result cuStreamEndCapture(Stream stream, Graph* graph) {
  const Call call("cuStreamEndCapture");
  if (!stream->capturing) return emulator::fail(emulator::kWrongCapture, "the end of a capture that never began");
  if (emulator::captures != stream) return emulator::fail(emulator::kWrongThread, "a capture ends on another thread than it began");
  emulator::captures = nullptr;
  *graph = std::exchange(stream->capturing, nullptr);
  const bool joined = emulator::is_joined(**graph);
  for (const Stream other : (*graph)->joined) other->capturing = nullptr, other->last.clear();
  stream->last.clear();
  if (!(*graph)->broken && joined) return 0;
  const bool broken = (*graph)->broken;
  delete std::exchange(*graph, nullptr);
  return broken ? emulator::fail(emulator::kCaptureBroken, "the capture was broken")
                : emulator::fail(emulator::kCaptureUnjoined, "a capture ends before the work of another stream that belongs to it");
}

Result cuGraphInstantiateWithFlags(GraphExec* exec, Graph graph, unsigned long long) {
  const Call call("cuGraphInstantiateWithFlags");
  if (const Result refused = emulator::needs_context(); refused != 0) return refused;
  if (!graph) return emulator::fail(emulator::kInvalidValue, "no graph");
  *exec = new GraphExecObject{graph->nodes};
  return 0;
}

Result cuGraphLaunch(GraphExec exec, Stream stream) {
  const Call call("cuGraphLaunch");
  for (const size_t n : emulator::order_of(exec->nodes, emulator::gpu().order))
    if (const Result result = emulator::give(stream, exec->nodes[n].work); result != 0) return result;
  return 0;
}

Result cuGraphExecDestroy(GraphExec exec) {
  const Call call("cuGraphExecDestroy");
  delete exec;
  return 0;
}

Result cuGraphDestroy(Graph graph) {
  const Call call("cuGraphDestroy");
  delete graph;
  return 0;
}

}  // extern "C"
