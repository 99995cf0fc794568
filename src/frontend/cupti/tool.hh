// The profiler in the program, as far as this front-end has one for it: activities and callbacks, and the
// calls of driver and runtime that both see. One in a process, made when the program's first function of
// CUPTI is called; never destroyed. Any thread.
#pragma once

#include "frontend/call_watch.hh"
#include "frontend/cuda/tables/export_tables.hh"
#include "frontend/cupti/activities.hh"
#include "frontend/cupti/callbacks.hh"
#include "frontend/cupti/functions.hh"
#include "frontend/cupti/graph_events.hh"
#include "frontend/cupti/markers.hh"
#include "frontend/cupti/numbers.hh"

namespace outboard::frontend::cupti {

class tool_of_program final : public call_observer {
 public:
  static tool_of_program& instance();

  cupti::numbers numbers;
  cupti::callbacks callbacks;
  cupti::activities activities{numbers};

  cupti::markers markers{activities, callbacks, numbers};

  /// Something is wanted, or no more: calls are looked at while it is.
  void refresh();

  void entered(lane& own, tool_call& call) override;
  void left(lane& own, tool_call& call) override;
  std::string connected() override { return activities.connected(); }
  void cannot_record(const std::string& why) override {
    callbacks.tell_state(CUPTI_CBID_STATE_FATAL_ERROR, CUPTI_ERROR_NOT_SUPPORTED, why.c_str());
  }
  void ending() override { activities.ending(); }

 private:
  tool_of_program();
  void tell_of_module(const lane& own, const tool_call& call, std::uint32_t event);
  static void runtime_called(std::uint32_t function, const cuda::runtime_call& call);
  void runtime_entered(lane& own, std::uint32_t function, const cuda::runtime_call& call);
  void runtime_left(lane& own, std::uint32_t function, const cuda::runtime_call& call);
  void note_memory(const lane& own, const tool_call& call, const made_call& made, const memory_block& block);
  void note_pool(const tool_call& call, const made_call& made, pool_change what);
  void note_wait(const lane& own, const tool_call& call, const made_call& made);
  void tell_of_wait(const lane& own, const tool_call& call, std::uint8_t type);
  void note_context(lane& own);
  void tell_of_new(const lane& own, const tool_call& call, std::uint8_t begins);
  void tell_of(const lane& own, tool_call& call, std::uint32_t function);
  void tell_of(const lane& own, const cuda::runtime_call& call, std::uint32_t function, std::uint32_t number);
  void tell(const lane& own, bool runtime, std::uint32_t function, CUpti_CallbackData data);

  graph_events graph_events_{callbacks, numbers};
};

}  // namespace outboard::frontend::cupti
