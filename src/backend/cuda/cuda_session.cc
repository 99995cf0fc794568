#include "backend/cuda/cuda_session.hh"

#include <array>
#include <cstring>

#include "api/cuda/functions.hh"
#include "backend/cuda/any_thread.hh"
#include "backend/cuda/chapters/launch.hh"
#include "backend/daemon/device_shape.hh"
#include "marshal/data_bodies.hh"
#include "wire/features.hh"
#include "wire/output.hh"

namespace outboard::backend {

using namespace std::chrono_literals;

namespace {

/// So long images are still written for other sessions.
constexpr auto keeping_patience = 400ms;

/// May a client conclude from the reply that kernels have ended? (A look at what they printed is system
/// calls.)
bool may_tell_of_the_end(const api::function_info* function) {
  if (!function) return true;  // a service
  const api::description& about = function->about;
  return about.waits || about.deferred || about.fence || about.tells_end ||
         about.destroys != api::no_parameter;
}

constexpr auto update = static_cast<std::uint32_t>(marshal::service::memory_update);

wire::frame_header header_of(wire::frame_kind kind) {
  wire::frame_header out;
  out.kind = kind;
  return out;
}

}  // namespace

cuda_session::cuda_session(device::device& device, const kept_images& images)
    : session_api({.early_post = update, .launches = launch_opcodes()}),
      device_(device),
      kept_images_(images),
      driver_(device.cuda()),
      quota_(driver_, objects_, held_),
      memory_(driver_, held_),
      virtual_(driver_, held_),
      waits_(driver_),
      staging_(driver_, held_),
      staged_pieces_(driver_, staging_),
      mirrors_(driver_, staging_, held_),
      copies_(
          driver_, staging_,
          [this](std::uint64_t ticket, std::uint64_t offset, std::span<const std::byte> bytes) {
            const std::array<std::uint64_t, 2> prefix{ticket, offset};
            core_->send(header_of(wire::frame_kind::data), std::as_bytes(std::span(prefix)), bytes);
          },
          [this](std::uint64_t ticket, std::uint64_t offset, std::size_t size, const staging::block& block) {
            return send_aside(ticket, offset, size, block);
          }) {
  host_.emplace(host_calls::outside{
      [this] { copies_.flush(), core_->send_output(); }, [this](const boxed_bytes& b) { send_block(b); },
      [this](std::uint64_t number, const marshal::callback_body& errand) { send_errand(number, errand); },
      [this] { core_->client_was_asked(); }});
  graph_copies_.emplace(driver_, *host_);
  dumps_.emplace(
      [this](std::span<const std::byte> bytes) { core_->send_output_bytes(wire::output_core_dump, bytes); });
}

/// The piece goes over a data connection, and the client is told over which. False: there is none.
bool cuda_session::send_aside(std::uint64_t ticket, std::uint64_t offset, std::size_t size,
                              const staging::block& block) {
  std::unique_ptr<data_piece> piece = std::make_unique<staged_piece>(driver_, staging_, block, size);
  const auto way = core_->data().send_later(piece, block.context);
  if (!way) return (void)static_cast<staged_piece&>(*piece).release(), false;
  const marshal::aside_body body{ticket, offset, size, way->number, way->connection};
  core_->send(header_of(wire::frame_kind::aside), marshal::payload_of(body));
  return true;
}

void cuda_session::send_errand(std::uint64_t number, const marshal::callback_body& errand) {
  wire::frame_header header = header_of(wire::frame_kind::callback);
  header.ticket = number;
  core_->send(header, marshal::payload_of(errand));
}

result<std::vector<std::byte>> cuda_session::begin(session_core& session) {
  core_ = &session;
  return describe_devices();
}

void cuda_session::end(bool stuck) {
  images_.end(keeping_patience);
  if (stuck) return;
  dumps_.reset();
  graph_copies_.reset();
  host_.reset();
}

data_connections::look cuda_session::look_after_copies() {
  using look = data_connections::look;
  if (copies_.flush()) return look::sent;
  return copies_.empty() ? look::nothing : look::not_yet;
}

/// The welcome's content: everything about the devices that stays as it is.
result<std::vector<std::byte>> cuda_session::describe_devices() {
  auto facts = marshal::take_snapshot(driver_, true);
  if (!facts) return facts.error();
  facts_ = std::move(facts).value();
  apply_shape(core_->shape(), facts_);
  std::vector<std::uint64_t> boards;
  for (const marshal::device_facts& device : facts_.devices)
    boards.push_back(board_number(device.pci_bus_id));
  held_.open(boards, core_->activity(), core_->memory_slot());
  quota_.open(core_->shape().memory);
  facts_.device_kind = device_.kind();
  facts_.device_description = device_.describe();
  facts_.window_base = core_->hello().window_base;
  facts_.window_slot_size = core_->hello().window_slot_size;
  mirrors_.open(facts_);
  if (core_->hello().features & wire::feature_image_recall)
    images_.open(kept_images_.cache, kept_images_.access);
  facts_.own_addresses = memory_.reserve_window(facts_.window_base, facts_.window_slot_size, facts_);
  return marshal::encode(facts_);
}

/// Memory that both sides see is the same memory: neither what the client has written there nor its look at
/// what kernels have has a place among the requests of its lane, but for the time at which it was sent.
/// False: not such a request, or one that needs the driver.
bool cuda_session::serve_early(const frame& f) {
  if (!mirrors_.touchable()) return false;
  const wire::frame_header& header = f.header;
  if (header.kind == wire::frame_kind::post && header.opcode == update)
    return mirrors_.store(f.payload) == CUDA_SUCCESS;
  if (header.kind != wire::frame_kind::call ||
      header.opcode != static_cast<std::uint32_t>(marshal::service::memory_fetch))
    return false;
  wire::reader from(f.payload);
  auto body = marshal::take_body<marshal::fetch_body>(from);
  std::vector<std::byte> changes, payload(sizeof(std::int32_t));
  if (!from.finished() || mirrors_.find(body, 0, changes) != CUDA_SUCCESS) return false;
  wire::writer reply(payload);
  marshal::put_body(reply, body);
  wire::frame_header answered = header_of(wire::frame_kind::reply);
  answered.opcode = header.opcode;
  answered.lane = header.lane;
  answered.ticket = header.ticket;
  core_->send(answered, payload, changes);
  return true;
}

bool cuda_session::any_thread_may(const wire::frame_header& header, std::span<const std::byte> payload) {
  return backend::any_thread_may(header, payload);
}

std::uint64_t cuda_session::side_stream(const frame& launch) {
  const std::uint64_t stream = lone_launch_stream(launch.header, launch.payload);
  return stream == 0 || captures_.any() || host_->waiting() || !owners_.empty() ? 0 : stream;
}

bool cuda_session::leave_aside(const frame& launch, std::uint64_t stream) {
  CUstream native = nullptr;
  if (objects_.resolve_stream(stream, native) != CUDA_SUCCESS) return false;
  work_.on(launch.header.context, native);
  unseen_.launched(launch.header.context);
  return true;
}

bool cuda_session::make_side_launch(lane& on, const frame& launch) {
  auto& own = static_cast<cuda_lane&>(on);
  wire::reader from(launch.payload);
  const auto body = marshal::take_body<marshal::launch_body>(from);
  if (!from.finished()) return false;
  launch_place where;
  const CUresult code =
      make_launch(driver_, objects_, body, enter_context(own, launch.header.context), where);
  if (is_sticky(code)) {
    tell_sticky(launch.header.context, code, true);
  } else if (code != CUDA_SUCCESS && own.deferred == 0) {
    own.deferred = static_cast<std::int32_t>(code);
  }
  return true;
}

bool cuda_session::carry_out(lane& on, lane& from, frame& request) {
  auto& own = static_cast<cuda_lane&>(on);
  const wire::frame_header& header = request.header;
  if (late_.any() && !late_.enter_into(objects_))
    core_->end(false, "protocol error: the handle of a load is in use");
  wire::writer reply(own.reply);
  std::array<std::byte, scratch_size> first;
  std::pmr::monotonic_buffer_resource scratch(first.data(), first.size());
  call c{*this, own, header, wire::reader(request.payload), reply, scratch};
  outcome what;
  if (const handler handle = find_handler(header.opcode)) {
    c.refused = enter_context(own, header.context);
    if (const auto owner = owners_.find(header.context); owner != owners_.end()) [[unlikely]]
      request.header.context = owner->second;
    if (header.kind == wire::frame_kind::call) core_->expect_reply();
    what = handle(c);
    if (!own.gave_up_turn) c.account_for_work();
  } else {
    what = outcome::answer(CUDA_ERROR_NOT_SUPPORTED);
  }
  if (!what.well_formed) return false;
  core_->executed(header.ticket);
  answer(own, static_cast<cuda_lane&>(from), header, what, c.keep_outputs_on_error);
  return true;
}

CUresult cuda_session::replay(cuda_lane& own, const wire::frame_header& header,
                              std::vector<std::byte> payload) {
  const handler handle = find_handler(header.opcode);
  // Records hold requests that make things: never ones that wait, nor other records.
  const api::function_info* function = api::find_function(header.opcode);
  if (!handle || !function || function->about.waits) return CUDA_ERROR_INVALID_VALUE;
  frame outer = std::exchange(own.inbox, frame{header, std::move(payload)});
  std::vector<std::byte> outputs(sizeof(std::int32_t));
  wire::writer reply(outputs);
  std::pmr::monotonic_buffer_resource scratch;
  call c{*this, own, own.inbox.header, wire::reader(own.inbox.payload), reply, scratch};
  c.refused = enter_context(own, header.context);
  own.keeps_turn = true;
  const outcome what = handle(c);
  own.keeps_turn = false;
  own.inbox = std::move(outer);
  return what.well_formed ? static_cast<CUresult>(what.code) : CUDA_ERROR_INVALID_VALUE;
}

void cuda_session::answer(cuda_lane& own, cuda_lane& asking, const wire::frame_header& header, outcome what,
                          bool keep_outputs) {
  auto code = static_cast<CUresult>(what.code);
  // The dump of a fault is on the client's side before the client hears of the fault. A post cannot wait for
  // it: its client may be sending; the next call in that context says the same.
  if (is_sticky(code)) tell_sticky(header.context, code, header.kind == wire::frame_kind::post);
  if (header.kind == wire::frame_kind::post) {
    if (code != CUDA_SUCCESS && !is_sticky(code) && asking.deferred == 0) asking.deferred = code;
    return;
  }
  const api::function_info* function = api::find_function(header.opcode);
  std::unique_lock<std::mutex> finished;  // no other reply overtakes these bytes
  if (function && function->about.deferred) {
    if (!copies_.empty())
      finished = copies_.flush_with([&](std::uint64_t ticket, std::uint64_t offset,
                                        std::span<const std::byte> b) {
        const std::array<std::uint64_t, 2> prefix{ticket, offset};
        core_->send_with_reply(own, header_of(wire::frame_kind::data), std::as_bytes(std::span(prefix)), b);
      });
    if (code == CUDA_SUCCESS) code = static_cast<CUresult>(std::exchange(asking.deferred, 0));
  }
  const auto number = static_cast<std::int32_t>(code);
  std::memcpy(own.reply.data(), &number, sizeof number);
  if (what.code != 0 && !keep_outputs) own.reply.resize(sizeof number);
  const device_output* const output = core_->output();
  const bool looks = output && (unseen_.possible() || what.code != 0 || output->kept());
  if (looks && may_tell_of_the_end(function)) core_->send_output();
  unseen_.waited(std::exchange(own.waited_for, unseen_output::unknown));
  core_->reply(own, asking, header);
}

/// Bytes that a graph's copy left in its block, for the client's box; a piece never crosses a row.
void cuda_session::send_block(const boxed_bytes& b) {
  constexpr std::uint64_t piece = 4u << 20;
  for (std::uint64_t at = 0; at < b.size;) {
    const std::uint64_t n = std::min({piece, b.row - at % b.row, b.size - at});
    const std::array<std::uint64_t, 2> prefix{b.id | wire::graph_copy, at};
    core_->send(header_of(wire::frame_kind::data), std::as_bytes(std::span(prefix)),
                std::span(b.data + at, n));
    at += n;
  }
}

void cuda_session::set_owner(std::uint64_t context, std::uint64_t owner) {
  if (owner) {
    owners_[context] = owner;
  } else {
    owners_.erase(context);
  }
}

void cuda_session::tell_sticky(std::uint64_t context, CUresult code, bool by_post) {
  if (sticky_.knows(context)) return;
  if (dumps_->expected()) {
    if (by_post) return;
    dumps_->finish();
  }
  if (!sticky_.note(context, code)) return;
  wire::frame_header header = header_of(wire::frame_kind::notice);
  header.context = context;
  const auto number = static_cast<std::int32_t>(code);
  core_->send(header, std::as_bytes(std::span(&number, 1)));
}

cuda_session::upload_room cuda_session::reserve_upload(std::uint64_t more) {
  std::uint64_t before = uploaded_.load();
  do {
    if (more > marshal::max_image_bytes - before) return upload_room::too_much;
  } while (!uploaded_.compare_exchange_weak(before, before + more));
  if (held_.add_within(this_machine, more, held_.most_of_machine())) return upload_room::taken;
  uploaded_ -= more;
  return upload_room::no_memory;
}

CUresult cuda_session::enter_context(cuda_lane& own, std::uint64_t context) {
  if (context == 0) return CUDA_SUCCESS;
  const std::uint64_t epoch = context_epoch_.load(std::memory_order_relaxed);
  if (own.context == context && own.context_epoch == epoch) return CUDA_SUCCESS;
  CUcontext native = nullptr;
  if (const CUresult code = objects_.resolve(context, native); code != CUDA_SUCCESS) {
    return code == CUDA_ERROR_INVALID_HANDLE ? CUDA_ERROR_INVALID_CONTEXT : code;
  }
  const CUresult code = driver_.cuCtxSetCurrent(native);
  if (code == CUDA_SUCCESS) own.context = context, own.context_epoch = epoch;
  return code;
}

}  // namespace outboard::backend
