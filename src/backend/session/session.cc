#include "backend/session/session.hh"

#include "backend/daemon/device_shape.hh"
#include "backend/session/patience.hh"
#include "backend/session/resumption.hh"
#include "backend/session/session_core.hh"
#include "backend/worker/shared_account.hh"
#include "base/version.hh"
#include "marshal/data_bodies.hh"
#include "transport/spin.hh"
#include "wire/features.hh"
#include "wire/output.hh"

namespace outboard::backend {

using namespace std::chrono_literals;

namespace {

/// How often the stand-by looks whether the client is still there while a lane holds the turn inside the
/// driver.
constexpr auto watch_interval = 100ms;
/// The same where a client that ends waits for us to have heard it.
constexpr auto farewell_interval = 10ms;

/// The same while the client is to run a host function: whoever is inside the driver may be waiting for it.
constexpr auto ahead_interval = 1ms;
/// Whether one is inside the driver for long, where the client may write a word that it waits for.
constexpr auto look_interval = 5ms;

/// A client that has closed may have left work that ends by itself (its last requests, the goodbye): it gets
/// this long.
constexpr auto gone_patience = 300ms;

/// Between the last release of a context, which runtimes make from a destructor, and the end of the process.
constexpr auto leaving_moment = 2ms;

/// So long images are still written for other sessions.
constexpr auto keeping_patience = 400ms;

/// How long lanes may take to leave the driver once the session is over. A worker has to be gone within a
/// second.
constexpr auto lane_patience = 300ms;

/// Of a session that does not speak CUDA.
const api::driver_table no_driver;

}  // namespace

session_end serve_session(session_request request) {
  auto* core = new session_core(std::move(request));
  session_end end = core->run();
  if (!end.stuck) delete core;  // else its threads still use it
  return end;
}

session_core::session_core(session_request request)
    : request_(std::move(request)),
      connection_(*request_.connection),
      driver_(request_.device ? request_.device->cuda() : no_driver),
      from_(connection_),
      quota_(driver_, objects_, held_),
      memory_(driver_, held_),
      virtual_(driver_, held_),
      waits_(driver_),
      staging_(driver_),
      staged_pieces_(driver_, staging_),
      data_(
          request_.api ? request_.api->pieces() : staged_pieces_,
          [this](std::string why) { end(false, std::move(why)); },
          [this] {
            using look = data_connections::look;
            if (copies_.flush()) return look::sent;
            return copies_.empty() ? look::nothing : look::not_yet;
          }),
      mirrors_(driver_, staging_, held_),
      copies_(
          driver_, staging_,
          [this](std::uint64_t ticket, std::uint64_t offset, std::span<const std::byte> bytes) {
            std::vector<std::byte> prefix;
            wire::writer w(prefix);
            w.put(ticket);
            w.put(offset);
            wire::frame_header header;
            header.kind = wire::frame_kind::data;
            send(header, prefix, bytes);
          },
          [this](std::uint64_t ticket, std::uint64_t offset, std::size_t size, const staging::block& block) {
            std::unique_ptr<data_piece> piece =
                std::make_unique<staged_piece>(driver_, staging_, block, size);
            const auto way = data_.send_later(piece, block.context);
            if (!way) return (void)static_cast<staged_piece&>(*piece).release(), false;
            std::vector<std::byte> payload;
            wire::writer w(payload);
            marshal::put_body(w, marshal::aside_body{ticket, offset, size, way->number, way->connection});
            wire::frame_header header;
            header.kind = wire::frame_kind::aside;
            send(header, payload);
            return true;
          }),
      host_({[this] { copies_.flush(), send_output(); }, [this](const boxed_bytes& b) { send_block(b); },
             [this](std::uint64_t number, const marshal::callback_body& errand) {
               std::vector<std::byte> payload;
               wire::writer w(payload);
               marshal::put_body(w, errand);
               wire::frame_header header;
               header.kind = wire::frame_kind::callback;
               header.ticket = number;
               send(header, payload);
             },
             [this] { turn_.nudge(standby_); }}),
      graph_copies_(driver_, host_),
      dumps_([this](std::span<const std::byte> bytes) { send_output_bytes(wire::output_core_dump, bytes); },
             request_.core_dumps) {}

session_core::~session_core() {
  if (request_.broker) request_.broker->end();
}

/// The welcome's content: everything about the devices that stays as it is.
result<std::vector<std::byte>> session_core::describe_devices() {
  auto facts = marshal::take_snapshot(driver_, true);
  if (!facts) return facts.error();
  facts_ = std::move(facts).value();
  apply_shape(request_.shape, facts_);
  std::vector<std::uint64_t> boards;
  for (const marshal::device_facts& device : facts_.devices)
    boards.push_back(board_number(device.pci_bus_id));
  if (request_.account) request_.account->set_devices(boards);
  held_.open(boards, request_.activity, request_.account);
  quota_.open(request_.shape.memory, request_.account);
  facts_.device_kind = request_.device->kind();
  facts_.device_description = request_.device->describe();
  facts_.window_base = request_.hello.window_base;
  facts_.window_slot_size = request_.hello.window_slot_size;
  mirrors_.open(facts_);
  if (request_.hello.features & wire::feature_image_recall)
    images_.open(request_.images, request_.image_access);
  facts_.own_addresses = memory_.reserve_window(facts_.window_base, facts_.window_slot_size, facts_);
  return marshal::encode(facts_);
}

void session_core::welcome() {
  if (request_.hello.features & wire::feature_packed_pieces) data_.pack_pieces();
  auto content = request_.api ? request_.api->begin(*this) : describe_devices();
  std::vector<std::byte> payload;
  wire::frame_header header;
  if (!content) {
    header.kind = wire::frame_kind::refusal;
    payload = wire::encode(wire::refusal{wire::refusal_reason::device, content.error().message});
    send(header, payload);
    return end(false, content.error().message);
  }
  wire::welcome w;
  w.features = request_.hello.features;
  w.session = request_.id;
  w.product = product;
  w.content = std::move(*content);
  header.kind = wire::frame_kind::welcome;
  payload = wire::encode(w, request_.seal);
  send(header, payload);
  if (request_.resuming) request_.resuming->welcomed();
}

session_end session_core::run() {
  welcome();
  connection_.set_spin(transport::default_spin());
  auto gone_since = std::chrono::steady_clock::time_point::max();
  while (!turn_.ended()) {
    const auto now = std::chrono::steady_clock::now();
    const auto interval = host_.waiting()                          ? ahead_interval
                          : mirrors_.in_use() && executing_.load() ? ahead_interval
                          : mirrors_.in_use()                      ? look_interval
                          : request_.resuming                      ? farewell_interval
                                                                   : watch_interval;
    const std::uint64_t before = executed_.load(std::memory_order_relaxed);
    if (turn_.await_free(standby_, now + interval)) {
      lead(nullptr);
    } else if (host_.waiting() ||
               (mirrors_.in_use() && executed_.load(std::memory_order_relaxed) == before)) {
      read_ahead();
    }
    if (!turn_.ended() && connection_.peer_gone()) {
      gone_since = std::min(gone_since, now);
      if (now - gone_since >= gone_patience) end(false, "the client is gone");
    }
  }
  const bool stuck = !join_lanes();
  images_.end(keeping_patience);
  if (request_.api) request_.api->end();
  const std::lock_guard lock(end_mutex_);
  end_.stuck = stuck;
  return end_;
}

void session_core::end(bool orderly, std::string why) {
  {
    const std::lock_guard lock(end_mutex_);
    if (has_ended_) return;
    has_ended_ = true;
    end_ = {orderly, std::move(why)};
  }
  connection_.shutdown();
  host_.end();
  data_.end();
  turn_.end();
  turn_.wake(standby_);
}

/// False: a lane is still inside the driver after a little patience.
bool session_core::join_lanes() {
  for (auto& [number, l] : lanes_) turn_.wake(*l);
  const auto until = std::chrono::steady_clock::now() + lane_patience;
  for (auto& [number, l] : lanes_) {
    while (!l->gone.load(std::memory_order_acquire)) {
      if (std::chrono::steady_clock::now() > until) return false;
      std::this_thread::sleep_for(1ms);
    }
  }
  for (auto& [number, l] : lanes_) l->thread.join();
  return data_.join(until);
}

void session_core::send_with_reply(lane& own, wire::frame_header header, std::span<const std::byte> payload,
                                   std::span<const std::byte> bulk) {
  header.size = static_cast<std::uint32_t>(payload.size() + bulk.size());
  header.ack = executed_.load(std::memory_order_relaxed);
  std::array<std::byte, wire::header_size> raw;
  wire::encode_header(header, raw);
  for (const std::span<const std::byte> part : {std::span<const std::byte>(raw), payload, bulk})
    own.before_reply.insert(own.before_reply.end(), part.begin(), part.end());
}

void session_core::send_behind(std::span<const std::byte> before, wire::frame_header header,
                               std::span<const std::byte> payload, std::span<const std::byte> bulk) {
  header.size = static_cast<std::uint32_t>(payload.size() + bulk.size());
  header.ack = executed_.load(std::memory_order_relaxed);
  std::array<std::byte, wire::header_size> raw;
  wire::encode_header(header, raw);
  const auto part = [](std::span<const std::byte> b) {
    return iovec{const_cast<std::byte*>(b.data()), b.size()};
  };
  const std::array parts{part(before), part(raw), part(payload), part(bulk)};
  const std::size_t first = before.empty() ? 1 : 0;
  const std::lock_guard lock(send_mutex_);
  // The reader notices a lost connection.
  (void)connection_.send(std::span(parts).subspan(first, (bulk.empty() ? 3 : 4) - first));
}

void session_core::send_descriptor(std::uint64_t ticket, int fd) {
  wire::frame_header header;
  header.kind = wire::frame_kind::descriptor;
  header.ticket = ticket;
  header.ack = executed_.load(std::memory_order_relaxed);
  std::array<std::byte, wire::header_size> raw;
  wire::encode_header(header, raw);
  const std::array parts{iovec{raw.data(), raw.size()}};
  const std::lock_guard lock(send_mutex_);
  // The reader notices a lost connection; a frame without its descriptor would leave the stream out of step.
  if (connection_.send(parts).status != transport::io::done) return;
  if (!connection_.send_descriptor(fd)) connection_.shutdown();
}

bool session_core::client_is_leaving() {
  const auto until = std::chrono::steady_clock::now() + leaving_moment;
  while (!connection_.peer_gone()) {
    if (std::chrono::steady_clock::now() > until) return false;
    std::this_thread::sleep_for(100us);
  }
  return true;
}

std::unique_ptr<transport::connection> session_core::take_data_connection(const marshal::share_token& token) {
  if (!request_.broker || !request_.attach) return nullptr;
  auto kept = request_.broker->take_back(share_class::connection, token);
  if (!kept) return nullptr;
  auto link =
      request_.attach({kept->about.native.begin(), kept->about.native.end()}, std::move(kept->descriptor));
  if (!link.ok()) return nullptr;
  return request_.resuming ? request_.resuming->adopt(token, std::move(*link)) : std::move(*link);
}

std::optional<room_message> session_core::room_for(std::int32_t device, std::uint64_t bytes) const {
  const auto at = static_cast<std::size_t>(device);
  if (at >= facts_.devices.size() || bytes > facts_.devices[at].total_memory) return std::nullopt;
  if (!quota_.allows(device, bytes)) return std::nullopt;
  return room_message{request_.account && request_.account->lacks(device, bytes),
                      {board_number(facts_.devices[at].pci_bus_id)}};
}

bool session_core::make_room(const room_message& needed) const {
  return request_.broker && request_.broker->make_room(needed);
}

std::chrono::microseconds session_core::patience() const { return spin_budget(!others_ask()); }

void session_core::give_up_turn(lane& own) {
  // A post comes before all that is asked after it: whoever asks next waits for it as the lane itself does.
  if (own.gave_up_turn || own.replaying || own.inbox.header.kind == wire::frame_kind::post) return;
  own.gave_up_turn = true;
  stop_reading_ahead();
  turn_.release(standby_);
}

bool session_core::others_ask() const {
  int others = 0;
  for (auto at = lanes_.begin(); at != lanes_.end() && others < 2; ++at)
    others += !at->second->gone.load(std::memory_order_relaxed);
  return others > 1;
}

bool session_core::reserve_upload(std::uint64_t more) {
  std::uint64_t before = uploaded_.load();
  do {
    if (more > marshal::max_image_bytes - before) return false;
  } while (!uploaded_.compare_exchange_weak(before, before + more));
  return true;
}

void session_core::enter_late(late_object made) {
  const std::lock_guard lock(late_mutex_);
  late_.push_back(std::move(made));
  any_late_.store(true, std::memory_order_release);  // partner: carry_out()
}

void session_core::enter_late_objects() {
  const std::lock_guard lock(late_mutex_);
  any_late_.store(false, std::memory_order_relaxed);
  for (late_object& made : std::exchange(late_, {})) {
    if (!objects_.create(made.id, made.native, std::move(made.made_by), std::move(made.extra)))
      end(false, "protocol error: the handle of a load is in use");
  }
}

CUresult session_core::enter_context(lane& own, std::uint64_t context) {
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

const api::driver_table& call::driver() const { return session.driver(); }
object_tables& call::objects() const { return session.objects(); }
void call::give_up_turn() {
  if (!session.other_api()) account_for_work();
  session.give_up_turn(own);
}

bool call::enter(std::uint64_t id, void* native, record made_by, std::shared_ptr<void> extra) {
  if (!own.gave_up_turn) return objects().create(id, native, std::move(made_by), std::move(extra));
  session.enter_late({id, native, std::move(made_by), std::move(extra)});
  return true;
}

std::vector<std::byte> call::take_upload() {
  session.forget_upload(own.upload.size());
  return std::exchange(own.upload, {});
}

void call::works_on(CUstream stream, bool per_thread) {
  // A thread's own default stream is another one in the next thread.
  if (stream == CU_STREAM_PER_THREAD || (per_thread && !stream)) return;
  told_work = true;
  session.work().on(header.context, stream);
}

void call::account_for_work() {
  if (!std::exchange(told_work, true) && !leaves_no_work(header.opcode)) session.work().somewhere();
}

record call::as_record() const {
  // `body` has been walked already; the lane's frame still holds the whole payload.
  return {header.ticket, header.opcode, header.context, own.inbox.payload};
}

}  // namespace outboard::backend
