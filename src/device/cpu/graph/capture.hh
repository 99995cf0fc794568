// Streams under capture: what is submitted to them becomes nodes of a graph. A capture begins in one stream
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
    std::vector<graph_node*> tails;  ///< what the next node depends on
    std::vector<CUgraphNode> told;   ///< as the program was last told
    std::vector<CUgraphEdgeData> told_edges;
  };
  std::uint64_t id = 0;
  graph_ptr graph;
  bool into_existing = false;  ///< cuStreamBeginCaptureToGraph: the graph is the program's
  CUstreamCaptureMode mode = CU_STREAM_CAPTURE_MODE_GLOBAL;
  const void* thread = nullptr;  ///< where it began
  stream* origin = nullptr;
  bool invalidated = false, ended = false;
  std::map<stream*, member> members;
};
using capture_ptr = std::shared_ptr<stream_capture>;

/// A node behind everything that the stream has captured. Precondition: the stream was seen capturing().
CUresult capture_node(stream& s, CUgraphNodeType type, node_work work);

CUresult capture_begin(const stream_ptr& s, CUstreamCaptureMode mode, graph_ptr into,
                       const std::vector<graph_node*>& tails);
CUresult capture_end(stream& s, graph_ptr& out);
/// The program destroys the stream: a capture that began in it is over, any other has lost a member.
void capture_forget(stream& s);
/// Null: not under capture.
capture_ptr capture_of(stream& s);

/// The stream must not be waited for or asked while under capture: ends in
/// CUDA_ERROR_STREAM_CAPTURE_INVALIDATED.
CUresult capture_forbids(stream& s);
/// The legacy stream waits for all blocking streams: none may be under capture.
CUresult capture_forbids_legacy(const stream_group& group);
/// What concerns all streams of a context loses the captures among them.
CUresult capture_forbids_context(const stream_group& group);
/// What the calling thread may not do now, by the modes of all captures.
CUresult capture_forbids_unsafe();
/// An event that was recorded under capture has no state to ask for.
CUresult capture_forbids_event(event_object& e);

CUresult capture_record(stream& s, const std::shared_ptr<event_object>& e, CUevent handle, unsigned flags);
/// Of a stream under capture, or an event recorded under capture. `done`: there is nothing left to do.
CUresult capture_wait(const stream_ptr& s, const std::shared_ptr<event_object>& e, CUevent handle,
                      unsigned flags, bool& done);

}  // namespace outboard::device::cpu
