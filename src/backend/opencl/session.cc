#include "backend/opencl/session.hh"

#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdio>
#include <cstring>

#include "api/opencl/info.hh"
#include "api/opencl/own_library.hh"
#include "backend/opencl/extensions.hh"
#include "backend/opencl/questions.hh"
#include "backend/opencl/short_wait.hh"
#include "backend/session/session_core.hh"
#include "marshal/cuda/bodies.hh"
#include "marshal/opencl/snapshot.hh"

namespace outboard::backend::opencl {
namespace {

using marshal::opencl::info_value;

/// What a client may have uploaded for requests that have not come yet.
constexpr std::uint64_t most_uploaded = 8ull << 30;
/// Of a data frame; below the largest frame.
constexpr std::size_t piece = 8u << 20;
/// Sizes go out as they lie in memory, and the wire has them in 64 bits (marshal/opencl/widths.hh).
static_assert(sizeof(std::size_t) == sizeof(std::uint64_t));
/// An answer of a platform: extension lists are the longest.
constexpr std::size_t longest_answer = 1u << 20;

template <class Ask>
std::optional<std::vector<std::uint8_t>> answer_of(Ask&& ask) {
  std::size_t size = 0;
  if (ask(0, nullptr, &size) != CL_SUCCESS || size > longest_answer) return std::nullopt;
  std::vector<std::uint8_t> value(size);
  if (size && ask(size, value.data(), nullptr) != CL_SUCCESS) return std::nullopt;
  return value;
}

template <class Object, class Names, class Entry>
std::vector<info_value> ask_all(Entry entry, Object object, const Names& names) {
  std::vector<info_value> info;
  for (const auto name : names) {
    auto value = answer_of([&](std::size_t size, void* to, std::size_t* wanted) {
      return entry(object, name, size, to, wanted);
    });
    if (value) info.push_back({name, std::move(*value)});
  }
  return info;
}

bool is_ours(const api::opencl::function_table& table, cl_platform_id platform) {
  char suffix[64] = "";
  const cl_int code =
      table.clGetPlatformInfo(platform, CL_PLATFORM_ICD_SUFFIX_KHR, sizeof suffix - 1, suffix, nullptr);
  return code == CL_SUCCESS && std::strcmp(suffix, api::opencl::platform_suffix) == 0;
}

std::vector<cl_platform_id> platforms_of(const api::opencl::function_table& table) {
  cl_uint count = 0;
  if (table.clGetPlatformIDs(0, nullptr, &count) != CL_SUCCESS) return {};
  std::vector<cl_platform_id> list(count);
  if (count && table.clGetPlatformIDs(count, list.data(), nullptr) != CL_SUCCESS) return {};
  std::erase_if(list, [&](cl_platform_id p) { return is_ours(table, p); });
  return list;
}

std::vector<cl_device_id> devices_of(const api::opencl::function_table& table, cl_platform_id platform) {
  cl_uint count = 0;
  if (table.clGetDeviceIDs(platform, CL_DEVICE_TYPE_ALL, 0, nullptr, &count) != CL_SUCCESS) return {};
  std::vector<cl_device_id> list(count);
  if (count && table.clGetDeviceIDs(platform, CL_DEVICE_TYPE_ALL, count, list.data(), nullptr) != CL_SUCCESS)
    return {};
  return list;
}

std::uint64_t id_of(api::handle_kind kind, std::uint32_t index) {
  return wire::handle::make(static_cast<std::uint8_t>(kind), index, 1).value;
}

/// `change` gets the number that the device gave by this name, if it gave one, and gives another.
template <class T, class Change>
void change_number(std::vector<info_value>& info, cl_device_info name, Change&& change) {
  for (info_value& each : info) {
    T number{};
    if (each.name != name || each.value.size() != sizeof number) continue;
    std::memcpy(&number, each.value.data(), sizeof number);
    number = change(number);
    std::memcpy(each.value.data(), &number, sizeof number);
  }
}

/// What the client is told of memory is what it may hold.
void shape_memory(std::vector<info_value>& info, std::uint64_t most) {
  for (const cl_device_info size :
       {CL_DEVICE_GLOBAL_MEM_SIZE, CL_DEVICE_MAX_MEM_ALLOC_SIZE, CL_DEVICE_MAX_CONSTANT_BUFFER_SIZE})
    change_number<cl_ulong>(info, size, [&](cl_ulong bytes) { return std::min<cl_ulong>(bytes, most); });
  std::vector<std::uint8_t> limit(sizeof most);
  std::memcpy(limit.data(), &most, sizeof most);
  info.push_back({api::opencl::session_memory_limit, std::move(limit)});
}

/// What is left is what needs no page that both ends have.
void hide_fine_grain(std::vector<info_value>& info) {
  change_number<cl_device_svm_capabilities>(
      info, CL_DEVICE_SVM_CAPABILITIES, [](auto able) { return able & CL_DEVICE_SVM_COARSE_GRAIN_BUFFER; });
}

template <class T>
T value_of_device(const api::opencl::function_table& table, cl_device_id device, cl_device_info name) {
  return value_of<T>([&](std::size_t size, void* to, std::size_t* wanted) {
           return table.clGetDeviceInfo(device, name, size, to, wanted);
         })
      .value_or(T{});
}

/// 0: it says nothing of a board.
std::uint64_t board_of(const api::opencl::function_table& table, cl_device_id device) {
  const auto place = value_of_device<cl_device_pci_bus_info_khr>(table, device, CL_DEVICE_PCI_BUS_INFO_KHR);
  std::array<char, 64> text{};
  std::snprintf(text.data(), text.size(), "%x:%x:%x", place.pci_domain, place.pci_bus, place.pci_device);
  const bool none = !place.pci_domain && !place.pci_bus && !place.pci_device;
  return none ? 0 : board_number(text.data());
}

}  // namespace

std::vector<cl_device_id> devices_of(const api::opencl::function_table& table, cl_context context) {
  return list_of<cl_device_id>([&](std::size_t size, void* to, std::size_t* wanted) {
    return table.clGetContextInfo(context, CL_CONTEXT_DEVICES, size, to, wanted);
  });
}

bool takes_fine_grain(const api::opencl::function_table& table, cl_device_id device) {
  const auto able = value_of_device<cl_device_svm_capabilities>(table, device, CL_DEVICE_SVM_CAPABILITIES);
  const auto type = value_of_device<cl_device_type>(table, device, CL_DEVICE_TYPE);
  return (able & CL_DEVICE_SVM_FINE_GRAIN_BUFFER) && (type & CL_DEVICE_TYPE_CPU);
}

session& own(call& c) { return static_cast<session&>(c.core.api()); }

session::session(session_core& core, const api::opencl::function_table& table) : core_(core), table_(table) {}

result<std::vector<std::byte>> session::begin() {
  if (core_.passes_descriptors()) (void)pages_.open();
  ledger_ = std::make_shared<memory_ledger>(core_.shape().memory, core_.activity(), core_.account());
  marshal::opencl::snapshot s;
  std::array<char, 256> host{};
  if (::gethostname(host.data(), host.size() - 1) == 0) s.host = host.data();
  for (const cl_platform_id platform : platforms_of(table_)) {
    marshal::opencl::platform_facts facts;
    facts.handle = id_of(api::handle_kind::cl_platform, static_cast<std::uint32_t>(s.platforms.size()));
    facts.info = ask_all(table_.clGetPlatformInfo, platform, api::opencl::platform_infos);
    const std::vector<std::uint32_t> functions = extension_functions_of(table_, platform);
    const auto* const bytes = reinterpret_cast<const std::uint8_t*>(functions.data());
    facts.info.push_back(
        {api::opencl::extension_functions_there, {bytes, bytes + functions.size() * sizeof functions[0]}});
    CHECK(objects_.create(facts.handle, platform, {}));
    for (const cl_device_id device : devices_of(table_, platform)) facts.devices.push_back(introduce(device));
    s.platforms.push_back(std::move(facts));
  }
  ledger_->open();
  if (s.platforms.empty()) return failure("this host has no OpenCL platform");
  return marshal::opencl::encode(s);
}

marshal::opencl::device_facts session::introduce(cl_device_id device, cl_device_id whole) {
  if (whole) {
    ledger_->add_part(device, whole);
  } else {
    ledger_->add(device, board_of(table_, device),
                 value_of_device<cl_ulong>(table_, device, CL_DEVICE_GLOBAL_MEM_SIZE));
  }
  records_.add(device);
  const std::uint64_t id = id_of(api::handle_kind::cl_device, devices_++);
  CHECK(objects_.create(id, device, {}));
  marshal::opencl::device_facts facts{id, ask_all(table_.clGetDeviceInfo, device, api::opencl::device_infos)};
  if (!pages_.is_open() || !takes_fine_grain(table_, device)) hide_fine_grain(facts.info);
  if (ledger_->most()) shape_memory(facts.info, ledger_->most());
  return facts;
}

std::shared_ptr<memory_ledger::hold> session::count(cl_context context, std::uint64_t bytes) {
  return ledger_->take(ledger_->places_of(opencl::devices_of(table_, context)), bytes);
}

std::optional<room_message> session::room_for(cl_context context, std::uint64_t bytes) const {
  return ledger_->room_for(ledger_->places_of(opencl::devices_of(table_, context)), bytes);
}

cl_int session::take_failure(cl_command_queue queue) {
  const auto found = failures_.extract(queue);
  return found.empty() ? CL_SUCCESS : found.mapped();
}

void session::newest(cl_command_queue queue, cl_event done) {
  if (!done && newest_.empty()) return;
  if (done) table_.clRetainEvent(done);
  const auto before = newest_.extract(queue);
  if (!before.empty()) table_.clReleaseEvent(before.mapped());
  if (done) newest_.emplace(queue, done);
}

cl_event session::newest_of(cl_command_queue queue) {
  const auto found = newest_.find(queue);
  if (found == newest_.end()) return nullptr;
  table_.clRetainEvent(found->second);
  return found->second;
}

bool session::upload(std::uint64_t number, std::span<const std::byte> bytes) {
  if (bytes.size() > most_uploaded - uploaded_) return false;
  std::vector<std::byte>& all = uploads_[number];
  all.insert(all.end(), bytes.begin(), bytes.end());
  uploaded_ += bytes.size();
  return true;
}

std::optional<std::vector<std::byte>> session::take_bytes(const marshal::opencl::bytes_body& about,
                                                          std::span<const std::byte> rest) {
  std::vector<std::byte> bytes;
  if (about.upload == 0) {
    bytes.assign(rest.begin(), rest.end());
  } else {
    auto found = uploads_.extract(about.upload);
    if (!rest.empty() || found.empty()) return std::nullopt;
    bytes = std::move(found.mapped());
    uploaded_ -= bytes.size();
  }
  if (bytes.size() != about.size) return std::nullopt;
  return bytes;
}

bool session::expect_files(std::uint32_t lane, const marshal::opencl::build_files_body& body,
                           std::span<const std::byte> bytes) {
  using marshal::opencl::file_bytes;
  if (!well_formed(body)) return false;
  files_of_build wanted{body.here, name_of_set(body), body.folders, {}};
  for (const auto& file : body.files) {
    file_contents contents;
    if (file.bytes == file_bytes::known) {
      const auto found = kept_files_.find(file.digest);
      if (found == kept_files_.end() || found->second->size() != file.size) return false;
      contents = found->second;
    } else {
      if (file.size > bytes.size()) return false;
      const auto its = bytes.first(static_cast<std::size_t>(file.size));
      bytes = bytes.subspan(its.size());
      // The digest is part of the set's name, by which a driver may find what it has built for others.
      if (sha256(its) != file.digest) return false;
      contents = std::make_shared<const std::vector<std::byte>>(its.begin(), its.end());
    }
    if (file.bytes == file_bytes::kept && kept_files_.emplace(file.digest, contents).second) {
      kept_file_bytes_ += file.size;
      if (kept_file_bytes_ > marshal::opencl::most_kept_file_bytes) return false;
    }
    wanted.files.emplace_back(file.path, std::move(contents));
  }
  expected_files_[lane] = std::move(wanted);
  return bytes.empty();
}

std::optional<files_of_build> session::take_files(std::uint32_t lane) {
  auto found = expected_files_.extract(lane);
  if (found.empty()) return std::nullopt;
  return std::move(found.mapped());
}

std::optional<host_bytes> session::take_bytes_for(cl_context context,
                                                  const marshal::opencl::bytes_body& about,
                                                  std::span<const std::byte> rest) {
  if (about.upload) {
    auto bytes = take_bytes(about, rest);
    if (!bytes) return std::nullopt;
    const auto owned = std::make_shared<std::vector<std::byte>>(std::move(*bytes));
    return host_bytes{owned->data(), owned->size(), owned};
  }
  if (rest.size() != about.size) return std::nullopt;
  host_bytes block = blocks_.take(context, rest.size());
  std::copy(rest.begin(), rest.end(), block.data);
  return block;
}

void session::prepare_pieces(std::uint64_t id, cl_context context) {
  blocks_.prepare(context);
  pieces_.add(id, context);
}

void session::forget(cl_context context) {
  if (const std::uint64_t id = pieces_.remove(context)) core_.data().drop_context(id);
  blocks_.forget(context);
  areas_.close_all_of(context);
}

/// Of most queues in their order; of others later ones wait for the first. `gone` dies without the lock: to
/// let go of locked memory the driver waits for a command.
void session::drop_complete(std::deque<kept>& of_queue, std::vector<kept>& gone) {
  while (!of_queue.empty() && is_over(table_, of_queue.front().done)) {
    table_.clReleaseEvent(of_queue.front().done);
    gone.push_back(std::move(of_queue.front()));
    of_queue.pop_front();
  }
}

void session::keep(cl_command_queue queue, cl_event done, std::shared_ptr<const void> used) {
  std::vector<kept> gone;
  const std::lock_guard lock(kept_mutex_);
  std::deque<kept>& of_queue = kept_[queue];
  drop_complete(of_queue, gone);
  of_queue.push_back({done, std::move(used)});
}

void session::drop_kept() {
  std::vector<kept> gone;
  const std::lock_guard lock(kept_mutex_);
  for (auto at = kept_.begin(); at != kept_.end();) {
    drop_complete(at->second, gone);
    at = at->second.empty() ? kept_.erase(at) : std::next(at);
  }
}

void session::add_read(pending_read read) {
  const std::lock_guard lock(reads_mutex_);
  reads_.push_back(std::move(read));
}

void session::send_finished_reads() {
  const std::lock_guard leaving(leaving_mutex_);
  std::vector<pending_read> over;
  {
    const std::lock_guard lock(reads_mutex_);
    std::erase_if(reads_, [&](pending_read& read) {
      const bool gone = !read.done || is_over(table_, read.done);
      if (gone) over.push_back(std::move(read));
      return gone;
    });
  }
  for (const pending_read& read : over) {
    if (read.done && status_of(table_, read.done) == CL_COMPLETE) {
      send_bytes(read.ticket, {read.bytes.data, read.bytes.size});
    } else {
      tell_failed(read.ticket);
    }
    if (read.done) table_.clReleaseEvent(read.done);
  }
}

void session::look_at_reads() {
  {
    const std::lock_guard lock(reads_mutex_);
    if (reads_.empty()) return;
  }
  if (!look_asked_.exchange(true)) teller_.pass_on({});
}

void session::send_read(call& c, std::span<const std::byte> bytes) {
  if (bytes.size() > goes_with_reply) return send_bytes(c.header.ticket, bytes);
  core_.send_data_with_reply(c.own, {c.header.ticket, 0}, bytes);
}

void session::send_bytes(std::uint64_t ticket, std::span<const std::byte> bytes) {
  for (std::size_t at = 0; at < bytes.size(); at += piece)
    core_.send_data({ticket, at}, bytes.subspan(at, std::min(piece, bytes.size() - at)));
}

void session::tell_failed(std::uint64_t ticket) { core_.send_data({ticket, wire::copy_failed}, {}); }

void session::tell(const teller::news& what) {
  if (what.number == 0) look_asked_.store(false);
  send_finished_reads();
  if (what.number == 0) return;
  std::vector<std::byte> payload;
  wire::writer w(payload);
  marshal::put_body(w, marshal::callback_body{marshal::errand::run, what.number, what.status, true, {}});
  wire::frame_header header;
  header.kind = wire::frame_kind::callback;
  core_.send(header, payload);
}

native_command::native_command(call& c, const marshal::opencl::command_body& body) {
  code = resolve(c, body.queue, queue);
  for (const std::uint64_t id : body.waits) {
    cl_event event = nullptr;
    const cl_int found = resolve(c, id, event);
    if (code == CL_SUCCESS) code = found;
    waits.push_back(event);
  }
}

bool given(call& c, const native_command& command, std::uint64_t event, cl_event done, cl_int code) {
  const bool posted = c.header.kind == wire::frame_kind::post;
  if (code != CL_SUCCESS && command.queue && posted) own(c).note_failure(command.queue, code);
  if (code == CL_SUCCESS) own(c).newest(command.queue, done);
  if (!event) return true;
  if (code == CL_SUCCESS) own(c).table().clRetainEvent(done);
  return keep(c, event, done, code).well_formed;
}

outcome keep_counted(call& c, std::uint64_t id, cl_mem native, cl_int code,
                     std::shared_ptr<memory_ledger::hold> held) {
  if (code != CL_SUCCESS || !held) return keep(c, id, native, code);
  // The platform's end of it.
  using hold = std::shared_ptr<memory_ledger::hold>;
  auto theirs = std::make_unique<hold>(held);
  const auto gone = [](cl_mem, void* mine) { delete static_cast<hold*>(mine); };
  if (own(c).table().clSetMemObjectDestructorCallback(native, gone, theirs.get()) == CL_SUCCESS)
    (void)theirs.release();
  return keep(c, id, native, code, end_with_handle(std::move(held)));
}

}  // namespace outboard::backend::opencl
