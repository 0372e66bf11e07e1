// Streams, events and graphs. Work that a stream is given waits until somebody waits for it: a program that reads too early sees nothing.
#include <deque>
#include <map>
#include <utility>
#include <vector>

#include "emulator.h"
#include "gpu.h"

namespace einc::cuda {

struct StreamObject {
  std::deque<emulator::Work> queue;
  uint64_t given = 0, done = 0, last_epilogue = UINT64_MAX;
  GraphObject* capturing = nullptr;
};
struct EventObject {
  Stream stream = nullptr;
  uint64_t place = 0;  // how much of the stream comes before the event
};
struct GraphObject {
  std::vector<emulator::Work> work;
};
struct GraphExecObject {
  std::vector<emulator::Work> work;
};

}  // namespace einc::cuda

namespace emulator {
namespace {

using namespace einc::cuda;

float epilogue_milliseconds = 1;
Result broken = 0;  // once a kernel failed nothing works any more

Result drain(Stream stream, uint64_t until) {
  while (stream->done < until && !stream->queue.empty()) {
    const Work work = std::move(stream->queue.front());
    stream->queue.pop_front();
    ++stream->done;
    if (broken == 0) broken = work();
  }
  return broken;
}

}  // namespace

Result give(Stream stream, Work work) {
  if (!stream) return fail(kInvalidHandle, "work for no stream");
  if (stream->capturing) {
    stream->capturing->work.push_back(std::move(work));
    return 0;
  }
  stream->queue.push_back(std::move(work));
  ++stream->given;
  return broken;
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
  *stream = new StreamObject;
  return 0;
}

Result cuStreamDestroy_v2(Stream stream) {
  const Call call("cuStreamDestroy_v2");
  const Result result = emulator::drain(stream, stream->given);
  delete stream;
  return result;
}

Result cuStreamSynchronize(Stream stream) {
  const Call call("cuStreamSynchronize");
  if (stream->capturing) return emulator::fail(emulator::kWrongCapture, "a stream is waited for while it is captured");
  return emulator::drain(stream, stream->given);
}

Result cuEventCreate(Event* event, unsigned) {
  const Call call("cuEventCreate");
  *event = new EventObject;
  return 0;
}

Result cuEventDestroy_v2(Event event) {
  const Call call("cuEventDestroy_v2");
  delete event;
  return 0;
}

Result cuEventRecord(Event event, Stream stream) {
  const Call call("cuEventRecord");
  if (stream->capturing) return emulator::fail(emulator::kWrongCapture, "an event is recorded while its stream is captured");
  event->stream = stream;
  event->place = stream->given;
  return 0;
}

Result cuEventSynchronize(Event event) {
  const Call call("cuEventSynchronize");
  return event->stream ? emulator::drain(event->stream, event->place) : 0;
}

// It has no clock.
Result cuEventElapsedTime(float* milliseconds, Event begin, Event end) {
  const Call call("cuEventElapsedTime");
  const uint64_t epilogue = end->stream ? end->stream->last_epilogue : UINT64_MAX;
  *milliseconds = begin->place <= epilogue && epilogue < end->place ? emulator::epilogue_milliseconds : 1;
  return 0;
}

Result cuStreamWaitEvent(Stream stream, Event event, unsigned) {
  const Call call("cuStreamWaitEvent");
  return emulator::give(stream, [other = event->stream, place = event->place] { return other ? emulator::drain(other, place) : 0; });
}

Result cuStreamBeginCapture_v2(Stream stream, int) {
  const Call call("cuStreamBeginCapture_v2");
  if (stream->capturing) return emulator::fail(emulator::kWrongCapture, "a stream is captured twice");
  stream->capturing = new GraphObject;
  return 0;
}

Result cuStreamEndCapture(Stream stream, Graph* graph) {
  const Call call("cuStreamEndCapture");
  if (!stream->capturing) return emulator::fail(emulator::kWrongCapture, "the end of a capture that never began");
  *graph = std::exchange(stream->capturing, nullptr);
  return 0;
}

Result cuGraphInstantiateWithFlags(GraphExec* exec, Graph graph, unsigned long long) {
  const Call call("cuGraphInstantiateWithFlags");
  *exec = new GraphExecObject{graph->work};
  return 0;
}

Result cuGraphLaunch(GraphExec exec, Stream stream) {
  const Call call("cuGraphLaunch");
  for (const emulator::Work& work : exec->work)
    if (const Result result = emulator::give(stream, work); result != 0) return result;
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
