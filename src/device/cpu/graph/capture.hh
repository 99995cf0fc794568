// Streams under capture, whose submitted work becomes nodes of a graph. A capture begins in one stream
// and spreads to those that wait for its events. All state is guarded by machine::graphs_mutex; whether a
// stream is under capture is one load (stream::capturing()).
#pragma once

#include <map>
#include <memory>
#include <vector>

#include "device/cpu/graph/graph.hh"

namespace outboard::device::cpu {

struct stream_capture {
  struct member {
    stream_ptr queue;
    std::vector<graph_node*> tails;     ///< what the next node depends on
    std::vector<CUgraphNode> returned;  ///< as last returned to the program
    std::vector<CUgraphEdgeData> returned_edges;
  };
  std::uint64_t id = 0;
  graph_ptr graph;
  bool into_existing = false;  ///< cuStreamBeginCaptureToGraph: the graph is the program's
  CUstreamCaptureMode mode = CU_STREAM_CAPTURE_MODE_GLOBAL;
  const void* thread = nullptr;  ///< the thread in which it began
  stream* origin = nullptr;
  bool invalidated = false, ended = false;
  std::map<stream*, member> members;
};
using capture_ptr = std::shared_ptr<stream_capture>;

/// Adds a node behind everything that the stream has captured. Precondition: the stream was seen capturing().
CUresult capture_node(stream& s, CUgraphNodeType type, node_work work);

CUresult capture_begin(const stream_ptr& s, CUstreamCaptureMode mode, graph_ptr into,
                       const std::vector<graph_node*>& tails);
CUresult capture_end(stream& s, graph_ptr& out);
/// Called when the program destroys the stream. A capture that began in it ends; any other loses this stream.
void capture_forget(stream& s);
/// Null: not under capture.
capture_ptr capture_of(stream& s);

/// A stream under capture must not be waited for or queried: doing so invalidates the capture.
CUresult capture_forbids(stream& s);
/// The legacy stream waits for all blocking streams: none may be under capture.
CUresult capture_forbids_legacy(const stream_group& group);
/// An operation on all streams of a context invalidates the captures among them.
CUresult capture_forbids_context(const stream_group& group);
/// Refuses calls that the modes of the open captures forbid to the calling thread.
CUresult capture_forbids_unsafe();
/// An event that was recorded under capture cannot be queried.
CUresult capture_forbids_event(event_object& e);

CUresult capture_record(stream& s, const std::shared_ptr<event_object>& e, CUevent handle, unsigned flags);
/// Waits for an event if the stream is under capture or the event was recorded under capture. `done`: there
/// is nothing left to do.
CUresult capture_wait(const stream_ptr& s, const std::shared_ptr<event_object>& e, CUevent handle,
                      unsigned flags, bool& done);

}  // namespace outboard::device::cpu
