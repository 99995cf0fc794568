// From opcode to handler: the generated handlers of CALL and POST lines, and the hand-written ones.
#include <type_traits>
#include <unordered_map>

#include "backend/opencl/command_work.hh"
#include "backend/opencl/ends.hh"
#include "backend/opencl/extensions.hh"
#include "backend/opencl/places.hh"
#include "backend/opencl/short_wait.hh"

namespace outboard::backend::opencl {
namespace {

using api::opencl::opcode;

/// Other lanes go on while this one waits; none of them may take away what it waits for.
template <opcode Op, class Execution>
cl_int wait(call& c, Execution& e) {
  const api::opencl::function_table& table = own(c).table();
  if constexpr (Op == opcode::clFinish) {
    const cl_command_queue queue = e.template argument<0>();
    if (table.clRetainCommandQueue(queue) != CL_SUCCESS) return CL_INVALID_COMMAND_QUEUE;
    const cl_int failed = own(c).take_failure(queue);
    if (!finished_soon(c, queue)) c.give_up_turn();
    const cl_int code = table.clFinish(queue);
    table.clReleaseCommandQueue(queue);
    return code == CL_SUCCESS ? failed : code;
  } else {
    static_assert(Op == opcode::clWaitForEvents);
    const cl_uint count = e.template argument<0>();
    const cl_event* const events = e.template argument<1>();
    if (!events) return CL_INVALID_VALUE;
    for (cl_uint i = 0; i < count; ++i) table.clRetainEvent(events[i]);
    if (!complete_soon(c, {events, count})) c.give_up_turn();
    const cl_int code = table.clWaitForEvents(count, events);
    for (cl_uint i = 0; i < count; ++i) table.clReleaseEvent(events[i]);
    return code;
  }
}

template <class F>
struct first_of;
template <class R, class First, class... A>
struct first_of<R(First, A...)> {
  using type = First;
  using result = R;
};

template <opcode Op, class First>
constexpr bool begins_with =
    std::is_same_v<typename first_of<typename api::function<Op>::prototype>::type, First>;

/// Do the places that a command names lie in its memory?
template <opcode Op, class Execution>
cl_int check_places(const api::opencl::function_table& table, const Execution& e) {
  marshal::opencl::box box;
  std::size_t bytes = 0;
  cl_int code = CL_SUCCESS;
  if constexpr (Op == opcode::clEnqueueFillBuffer) {
    code = check_row(table, e.template argument<1>(), e.template argument<4>(), e.template argument<5>());
  } else if constexpr (Op == opcode::clEnqueueCopyBuffer) {
    const std::size_t size = e.template argument<5>();
    code = check_row(table, e.template argument<1>(), e.template argument<3>(), size);
    if (code == CL_SUCCESS) code = check_row(table, e.template argument<2>(), e.template argument<4>(), size);
  } else if constexpr (Op == opcode::clEnqueueCopyBufferRect) {
    const std::size_t* const region = e.template argument<5>();
    code = check_box(table, e.template argument<1>(), e.template argument<3>(), region,
                     e.template argument<6>(), e.template argument<7>(), box);
    if (code == CL_SUCCESS)
      code = check_box(table, e.template argument<2>(), e.template argument<4>(), region,
                       e.template argument<8>(), e.template argument<9>(), box);
  } else if constexpr (Op == opcode::clEnqueueFillImage) {
    if (!e.template argument<2>()) return CL_INVALID_VALUE;
    code = check_region(table, e.template argument<1>(), e.template argument<3>(), e.template argument<4>(),
                        bytes);
  } else if constexpr (Op == opcode::clEnqueueCopyImage) {
    const std::size_t* const region = e.template argument<5>();
    code = check_region(table, e.template argument<1>(), e.template argument<3>(), region, bytes);
    if (code == CL_SUCCESS)
      code = check_region(table, e.template argument<2>(), e.template argument<4>(), region, bytes);
  } else if constexpr (Op == opcode::clEnqueueCopyImageToBuffer) {
    code = check_region(table, e.template argument<1>(), e.template argument<3>(), e.template argument<4>(),
                        bytes);
    if (code == CL_SUCCESS)
      code = check_row(table, e.template argument<2>(), e.template argument<5>(), bytes);
  } else if constexpr (Op == opcode::clEnqueueCopyBufferToImage) {
    code = check_region(table, e.template argument<2>(), e.template argument<4>(), e.template argument<5>(),
                        bytes);
    if (code == CL_SUCCESS)
      code = check_row(table, e.template argument<1>(), e.template argument<3>(), bytes);
  }
  return code;
}

/// What the session must remember of a request beside its objects: which queue's commands have failed, and
/// which kernels lack an argument.
template <opcode Op, class Execution>
void note(call& c, const Execution& e, cl_int code) {
  if constexpr (Op == opcode::clReleaseCommandQueue) {
    (void)own(c).take_failure(e.template argument<0>());
    own(c).newest(e.template argument<0>(), nullptr);
    own(c).records().forget(e.template argument<0>());
  } else if constexpr (Op == opcode::clReleaseKernel) {
    own(c).arguments().forget(e.template argument<0>());
  } else if constexpr (Op == opcode::clReleaseContext) {
    own(c).forget(e.template argument<0>());
  } else if constexpr (begins_with<Op, cl_command_queue>) {
    if (Op != opcode::clFlush && Op != opcode::clFinish) own(c).newest(e.template argument<0>(), nullptr);
    const bool posted = c.header.kind == wire::frame_kind::post;
    if (posted && code != CL_SUCCESS) own(c).note_failure(e.template argument<0>(), code);
  }
}

/// Gives a command to the device, and keeps its event for a profile. `wanted`: the client has an id for it.
template <opcode Op, class Execution, class Entry>
cl_int give(call& c, Execution& e, Entry* entry, bool wanted) {
  if constexpr (!leaves_work<Op>) {
    return e.run(entry);
  } else {
    const api::opencl::function_table& table = own(c).table();
    command_records& records = own(c).records();
    const std::uint64_t since = records.about_to_give();
    const cl_int code = e.run(entry);
    auto* const done = static_cast<cl_event>(e.created());
    if (code != CL_SUCCESS || !done) return code;
    std::string kernel;
    if constexpr (Op == opcode::clEnqueueNDRangeKernel)
      if (since) kernel = name_of(table, e.template argument<1>());
    if (since)
      records.given(since, e.template argument<0>(), done, work_of<Op>(table, e, c.header.ticket), kernel);
    if (!wanted) table.clReleaseEvent(done);
    return code;
  }
}

template <opcode Op, class Execution>
auto* entry_for(const api::opencl::function_table& table, const Execution& e) {
  if constexpr (api::opencl::is_extension<Op>) {
    return extension_entry<Op>(table, e.template argument<0>());
  } else {
    return api::opencl::entry_of<Op>::get(table);
  }
}

template <opcode Op>
outcome generated(call& c) {
  constexpr const api::description& about = api::function<Op>::about;
  marshal::execution<Op> execution;
  marshal::decode_state state{c.body, own(c).objects(), c.scratch};
  if constexpr (leaves_work<Op>) state.creates_anyway = own(c).records().on();
  if (execution.decode(state) == marshal::decode_status::malformed) return outcome::malformed();
  cl_int code = state.code;
  if constexpr (Op == opcode::clWaitForEvents) {
    // Of a command that could not be given to the device.
    if (code != CL_SUCCESS && code != CL_INVALID_EVENT) code = CL_EXEC_STATUS_ERROR_FOR_EVENTS_IN_WAIT_LIST;
  }
  if constexpr (about.destroys != api::no_parameter) {
    // Of one that was never made the client has heard already.
    if (code != CL_SUCCESS) return own(c).objects().erase(state.destroyed), outcome::answer(CL_SUCCESS);
  }
  if constexpr (Op == opcode::clEnqueueNDRangeKernel) {
    if (code == CL_SUCCESS) code = own(c).arguments().failed(execution.template argument<1>());
  }
  if (code == CL_SUCCESS) code = check_places<Op>(own(c).table(), execution);
  auto* const entry = code == CL_SUCCESS ? entry_for<Op>(own(c).table(), execution) : nullptr;
  if (code == CL_SUCCESS && !entry) code = CL_INVALID_OPERATION;
  if constexpr (about.returns) {
    void* native = nullptr;
    if (code == CL_SUCCESS) native = execution.run_returning(entry, code);
    using made = typename first_of<typename api::function<Op>::prototype>::result;
    return keep(c, state.created, static_cast<made>(native), code);
  } else {
    if (code == CL_SUCCESS) {
      if constexpr (about.waits) {
        code = wait<Op>(c, execution);
      } else {
        code = give<Op>(c, execution, entry, state.created != 0);
      }
    }
    // Of these lines' objects all are events.
    if (state.created &&
        !keep(c, state.created, static_cast<cl_event>(execution.created()), code).well_formed)
      return outcome::malformed();
    note<Op>(c, execution, code);
    if (about.destroys != api::no_parameter && code == CL_SUCCESS) own(c).objects().erase(state.destroyed);
    if (code == CL_SUCCESS) execution.encode_outputs(c.reply, own(c).objects());
    return outcome::answer(code);
  }
}

template <opcode Op, api::kind How>
handler generated_for() {
  if constexpr (How == api::kind::call || How == api::kind::post) return &generated<Op>;
  return nullptr;
}

std::unordered_map<std::uint32_t, handler> make_table() {
  std::unordered_map<std::uint32_t, handler> table;
  const auto add = [&](std::uint32_t code, handler h) {
    if (h) table[code] = h;
  };
#define CHAPTER(number, file)
#define OUTBOARD_LINE(how, symbol, ...) \
  add(static_cast<std::uint32_t>(opcode::symbol), generated_for<opcode::symbol, api::kind::how>());
#include "api/opencl/expand.def"
#undef OUTBOARD_LINE
#undef CHAPTER
#define HANDLER(symbol) add(static_cast<std::uint32_t>(opcode::symbol), &ends::symbol);
#define SERVICE(name) add(static_cast<std::uint32_t>(api::opencl::service::name), &ends::name);
#include "backend/opencl/handlers.def"
#undef HANDLER
#undef SERVICE
  return table;
}

}  // namespace

outcome session::carry_out(request_at_hand& request) {
  static const std::unordered_map<std::uint32_t, handler> table = make_table();
  const auto found = table.find(request.header.opcode);
  return found == table.end() ? outcome::answer(CL_INVALID_OPERATION) : found->second(request);
}

void session::answer(lane& own, lane& asking, const wire::frame_header& request, const outcome& what) {
  if (request.kind == wire::frame_kind::post) return;
  send_finished_reads();  // what the reply tells about is on the client's side first
  drop_kept();
  std::memcpy(own.reply.data(), &what.code, sizeof what.code);
  if (what.code != 0) own.reply.resize(sizeof what.code);
  core_.send_output();
  core_.send_reply(own, asking, request);
}

}  // namespace outboard::backend::opencl
