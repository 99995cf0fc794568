// What CUPTI's records and callbacks need to know of each driver function. Made once; any thread.
#pragma once

#include <cstdint>

#include "api/changes.hh"

namespace outboard::frontend::cupti {

using api::graph_change;
using api::pool_change;

struct function_traits {
  std::uint32_t callback = 0;      ///< CUPTI's number; 0: it knows none
  bool leaves_work = false;        ///< the device's records may be of it
  bool launches_graph = false;     ///< its first argument
  bool one_copy = false;           ///< all that it copies is one copy, in however many parts we make it
  std::uint8_t host_argument = 0;  ///< of a copy, from 1 on: which argument is the program's memory; 0: none
  bool async = false;              ///< the copy is not waited for
  bool allocates = false;          ///< memory, whose address goes where its first argument points
  bool releases = false;           ///< the memory at its first argument
  std::uint8_t begins = 0, ends = 0;  ///< CUpti_CallbackIdResource: of what it makes or destroys; 0: nothing
  std::uint8_t synchronizes = 0;      ///< CUpti_ActivitySynchronizationType; 0: it does not
  graph_change graph = graph_change::none;
  std::uint8_t edges = 0;      ///< of those that link or add: how many arguments stand for edges' data
  std::uint8_t node_type = 0;  ///< CUgraphNodeType of what it adds, + 1; 0: its parameters say
  pool_change pool = pool_change::none;
  bool records_event = false;     ///< its first argument
  std::uint8_t waited_event = 0;  ///< which argument is the event that it waits for, from 1 on; 0: none
  bool loads_module = false;      ///< its first argument points to the module
  bool unloads_module = false;    ///< its first argument
};

/// Of an opcode of api/cuda.
const function_traits& traits_of(std::uint32_t function);

}  // namespace outboard::frontend::cupti
