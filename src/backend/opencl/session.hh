// An OpenCL session in its worker: its function table, what was uploaded for later requests, and the reads
// whose bytes have not left yet. session_core owns it; with the session's turn, but for what says
// otherwise.
#pragma once

#include <atomic>
#include <cstddef>
#include <deque>
#include <map>
#include <mutex>
#include <optional>
#include <span>
#include <vector>

#include "api/opencl/table.hh"
#include "backend/opencl/block_pool.hh"
#include "backend/opencl/build_folder.hh"
#include "backend/opencl/command_records.hh"
#include "backend/opencl/data_pieces.hh"
#include "backend/opencl/kernel_arguments.hh"
#include "backend/opencl/memory_ledger.hh"
#include "backend/opencl/program_doors.hh"
#include "backend/opencl/shared_memory.hh"
#include "backend/opencl/shared_pages.hh"
#include "backend/opencl/teller.hh"
#include "backend/opencl/transfer_areas.hh"
#include "backend/session/handle_tables.hh"
#include "backend/session/session_api.hh"
#include "base/sha256.hh"
#include "marshal/opencl/bodies.hh"
#include "marshal/opencl/build_files.hh"
#include "marshal/opencl/snapshot.hh"

namespace outboard::backend::opencl {

/// A request as the handlers get it. What became of a post is theirs to keep.
using call = request_at_hand;
using handler = outcome (*)(call&);

/// A read under way: its bytes leave when `done` is complete.
struct pending_read {
  cl_event done = nullptr;  ///< ours to release; null: it could not be given to the device
  std::uint64_t ticket = 0;
  host_bytes bytes;
};

class session final : public session_api {
 public:
  session(session_core& core, const api::opencl::function_table& table);

  result<std::vector<std::byte>> begin() override;
  outcome carry_out(request_at_hand& request) override;
  void answer(lane& own, lane& asking, const wire::frame_header& request, const outcome& what) override;
  piece_memory& pieces() override { return pieces_; }
  bool leaves_commands() const override { return true; }
  void end(bool stuck) override {
    teller_.end();
    records_.drop();
    if (!stuck)
      objects_ = no_objects();  // what they count of the identity's memory is free before the end is told
  }

  const api::opencl::function_table& table() const { return table_; }
  handle_tables& objects() override { return objects_; }
  shared_memory& shared() { return shared_; }
  /// Open where the client can have fine-grained memory.
  shared_pages& pages() { return pages_; }
  block_pool& blocks() { return blocks_; }    ///< own lock
  transfer_areas& areas() { return areas_; }  ///< own lock
  /// Large transfers of this context, which the client calls `id`, come over connections of their own.
  void prepare_pieces(std::uint64_t id, cl_context context);
  /// The client has released it for the last time.
  void forget(cl_context context);

  /// The client may name this device from now on; what it is told of it. `whole`: of which it is a part.
  marshal::opencl::device_facts introduce(cl_device_id device, cl_device_id whole = nullptr);

  /// Counts an object of so many bytes on every device of the context. nullptr: more than the session may
  /// hold.
  std::shared_ptr<memory_ledger::hold> count(cl_context context, std::uint64_t bytes);
  /// What has to be freed for such an object; nothing: no other session's memory would help.
  std::optional<room_message> room_for(cl_context context, std::uint64_t bytes) const;
  std::shared_ptr<memory_ledger> ledger() { return ledger_; }

  /// A posted command of this queue could not be given to the device: the queue's next clFinish says so.
  void note_failure(cl_command_queue queue, cl_int code) { failures_.emplace(queue, code); }
  /// The first since it was asked last; the queue may be about to go.
  cl_int take_failure(cl_command_queue queue);
  kernel_arguments& arguments() { return arguments_; }
  command_records& records() { return records_; }  ///< own lock

  /// Bytes that come before the request that needs them. False: more than a session may have.
  bool upload(std::uint64_t number, std::span<const std::byte> bytes);
  /// Those of a request; `rest` is what stands behind its fields. Nothing: the request does not fit.
  std::optional<std::vector<std::byte>> take_bytes(const marshal::opencl::bytes_body& about,
                                                   std::span<const std::byte> rest);

  /// The client's files for the next build of this lane. False: the request does not fit.
  bool expect_files(std::uint32_t lane, const marshal::opencl::build_files_body& body,
                    std::span<const std::byte> bytes);
  /// Those of the build that this lane begins; nothing: none came.
  std::optional<files_of_build> take_files(std::uint32_t lane);
  build_folder& files() { return files_; }   ///< own lock
  program_doors& doors() { return doors_; }  ///< own lock

  /// Those of a write to a device of the context.
  std::optional<host_bytes> take_bytes_for(cl_context context, const marshal::opencl::bytes_body& about,
                                           std::span<const std::byte> rest);

  /// The queue's newest command, if it has an event that we know; null: it has none. Our own reference.
  void newest(cl_command_queue queue, cl_event done);
  /// For the caller to release.
  cl_event newest_of(cl_command_queue queue);

  /// What a command of the queue still uses: it goes once its event, which is the session's from now on, has
  /// come and somebody asks for something. (A callback of the driver's took 10 us.) Own lock; any thread.
  void keep(cl_command_queue queue, cl_event done, std::shared_ptr<const void> used);
  void drop_kept();

  /// Own lock; any thread.
  void add_read(pending_read read);
  /// Waits as long as the client takes none of their bytes: only where a thread of the client's reads,
  /// because it waits for an answer or a callback, or where nobody needs the calling thread.
  void send_finished_reads();
  /// The same soon, by another thread: a client that posts may read nothing until all of it is taken from it.
  void look_at_reads();
  /// Sends the bytes of a read that the request has waited for.
  void send_read(call& c, std::span<const std::byte> bytes);
  /// An event of the client's has reached the status that it asked for. Any thread, callbacks too.
  void tell_event(std::uint64_t number, std::int32_t status) { teller_.pass_on({number, status}); }

 private:
  static handle_tables no_objects() {
    return handle_tables([](api::handle_kind kind) -> std::int32_t { return api::opencl::invalid(kind); });
  }
  void tell(const teller::news& what);
  void send_bytes(std::uint64_t ticket, std::span<const std::byte> bytes);
  void tell_failed(std::uint64_t ticket);

  session_core& core_;
  const api::opencl::function_table table_;
  shared_memory shared_;
  shared_pages pages_;
  block_pool blocks_{table_};
  transfer_areas areas_{table_};
  data_pieces pieces_{blocks_, [this] { drop_kept(); }};
  std::shared_ptr<memory_ledger> ledger_;  // objects that the platform has not let go of yet have it, too
  std::uint32_t devices_ = 0;              // named so far
  std::map<cl_command_queue, cl_int> failures_;
  std::map<cl_command_queue, cl_event> newest_;
  kernel_arguments arguments_{table_};
  command_records records_{table_};
  std::map<std::uint64_t, std::vector<std::byte>> uploads_;
  std::uint64_t uploaded_ = 0;
  std::map<std::uint32_t, files_of_build> expected_files_;  // by lane
  std::map<sha256_digest, file_contents> kept_files_;
  std::uint64_t kept_file_bytes_ = 0;
  build_folder files_;
  program_doors doors_;
  struct kept {
    cl_event done;
    std::shared_ptr<const void> used;
  };
  void drop_complete(std::deque<kept>& of_queue, std::vector<kept>& gone);
  std::mutex kept_mutex_;  // guards kept_
  std::map<cl_command_queue, std::deque<kept>> kept_;

  std::mutex reads_mutex_;  // guards reads_
  std::deque<pending_read> reads_;
  std::mutex leaving_mutex_;  // held while bytes of reads leave: who comes next finds them gone; before
                              // reads_mutex_
  std::atomic<bool> look_asked_{false};   // and nobody has looked yet
  handle_tables objects_ = no_objects();  // what is behind them ends before what it uses
  teller teller_{[this](const teller::news& what) { tell(what); }};  // its thread uses what stands above
};

/// Is its fine-grained memory, if it has any, ordinary memory of this process?
bool takes_fine_grain(const api::opencl::function_table& table, cl_device_id device);

std::vector<cl_device_id> devices_of(const api::opencl::function_table& table, cl_context context);

/// The session of a request.
session& own(call& c);

/// The events that a command waits for, and its queue, by their ids; the first that is none gives `code`.
struct native_command {
  cl_command_queue queue = nullptr;
  std::vector<cl_event> waits;
  cl_int code = CL_SUCCESS;

  native_command(call& c, const marshal::opencl::command_body& body);
  cl_uint count() const { return static_cast<cl_uint>(waits.size()); }
  const cl_event* list() const { return waits.empty() ? nullptr : waits.data(); }
};

/// A command was given to the device, or not (`code`): the client's event, if it wants one, is one reference
/// more than the caller's `done`; a post's code is the queue's. False: malformed.
[[nodiscard]] bool given(call& c, const native_command& command, std::uint64_t event, cl_event done,
                         cl_int code);

template <class H>
cl_int resolve(call& c, std::uint64_t id, H& native) {
  void* raw = nullptr;
  const cl_int code = own(c).objects().native_of(api::handle_trait<H>::kind, id, raw);
  if (code == CL_SUCCESS) native = static_cast<H>(raw);
  return code;
}

/// Is this an id of such an object? Else one kind of object would be taken for another.
template <class H>
bool names(std::uint64_t id) {
  return wire::handle{id}.kind() == static_cast<std::uint8_t>(api::handle_trait<H>::kind);
}

/// All of a list, up to the first that is none.
template <class H>
cl_int resolve_all(call& c, const marshal::opencl::ids& list, std::vector<H>& natives) {
  cl_int code = CL_SUCCESS;
  for (std::size_t i = 0; i < list.size() && code == CL_SUCCESS; ++i)
    code = resolve(c, list[i], natives.emplace_back());
  return code;
}

/// The object that a request made, or why there is none, under the id that the client chose; the answer to
/// it.
template <class H>
outcome keep(call& c, std::uint64_t id, H native, cl_int code, std::shared_ptr<void> extra = nullptr) {
  const bool kept =
      names<H>(id) && (code == CL_SUCCESS ? own(c).objects().create(id, native, {}, std::move(extra))
                                          : own(c).objects().fail(id, code));
  return kept ? outcome::answer(code) : outcome::malformed();
}

/// The same of a memory object that counts; null: it does not.
outcome keep_counted(call& c, std::uint64_t id, cl_mem native, cl_int code,
                     std::shared_ptr<memory_ledger::hold> held);

}  // namespace outboard::backend::opencl
