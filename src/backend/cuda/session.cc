#include "backend/cuda/session.hh"

#include "backend/daemon/device_shape.hh"
#include "backend/worker/shared_account.hh"
#include "marshal/data_bodies.hh"
#include "wire/features.hh"
#include "wire/output.hh"

namespace outboard::backend {

using namespace std::chrono_literals;

namespace {

/// So long images are still written for other sessions.
constexpr auto keeping_patience = 400ms;

}  // namespace

session_maker speak_cuda(cuda_terms terms) {
  return [terms](session_core& core) { return std::make_unique<cuda_session>(core, terms); };
}

cuda_session::cuda_session(session_core& core, cuda_terms terms)
    : core_(core),
      terms_(terms),
      driver_(terms.device->cuda()),
      quota_(driver_, objects_, held_),
      memory_(driver_, held_),
      virtual_(driver_, held_),
      waits_(driver_),
      staging_(driver_),
      staged_pieces_(driver_, staging_),
      mirrors_(driver_, staging_, held_),
      copies_(
          driver_, staging_,
          [this](std::uint64_t ticket, std::uint64_t offset, std::span<const std::byte> bytes) {
            core_.send_data({ticket, offset}, bytes);
          },
          [this](std::uint64_t ticket, std::uint64_t offset, std::size_t size, const staging::block& block) {
            return send_aside(ticket, offset, size, block);
          }),
      host_(
          {[this] { copies_.flush(), core_.send_output(); }, [this](const boxed_bytes& b) { send_block(b); },
           [this](std::uint64_t number, const marshal::callback_body& errand) { ask_client(number, errand); },
           [this] { core_.expect_answer(); }}),
      graph_copies_(driver_, host_),
      dumps_(
          [this](std::span<const std::byte> bytes) {
            core_.send_output_bytes(wire::output_core_dump, bytes);
          },
          terms.core_dumps) {}

/// The welcome's content: everything about the devices that stays as it is.
result<std::vector<std::byte>> cuda_session::begin() {
  auto facts = marshal::take_snapshot(driver_, true);
  if (!facts) return facts.error();
  facts_ = std::move(facts).value();
  apply_shape(core_.shape(), facts_);
  std::vector<std::uint64_t> boards;
  for (const marshal::device_facts& device : facts_.devices)
    boards.push_back(board_number(device.pci_bus_id));
  if (core_.account()) core_.account()->set_devices(boards);
  held_.open(boards, core_.activity(), core_.account());
  quota_.open(core_.shape().memory, core_.account());
  const wire::hello& hello = core_.hello();
  facts_.device_kind = terms_.device->kind();
  facts_.device_description = terms_.device->describe();
  facts_.window_base = hello.window_base;
  facts_.window_slot_size = hello.window_slot_size;
  mirrors_.open(facts_);
  if (hello.features & wire::feature_image_recall) images_.open(terms_.images, terms_.image_access);
  facts_.own_addresses = memory_.reserve_window(facts_.window_base, facts_.window_slot_size, facts_);
  return marshal::encode(facts_);
}

void cuda_session::end(bool stuck) {
  images_.end(keeping_patience);
  if (!stuck) host_.join();
}

data_connections::look cuda_session::look_after_copies() {
  using look = data_connections::look;
  if (copies_.flush()) return look::sent;
  return copies_.empty() ? look::nothing : look::not_yet;
}

/// Takes the block if there is a connection for its bytes, and tells the client which.
bool cuda_session::send_aside(std::uint64_t ticket, std::uint64_t offset, std::size_t size,
                              const staging::block& block) {
  std::unique_ptr<data_piece> piece = std::make_unique<staged_piece>(driver_, staging_, block, size);
  const auto way = core_.data().send_later(piece, block.context);
  if (!way) return (void)static_cast<staged_piece&>(*piece).release(), false;
  std::vector<std::byte> payload;
  wire::writer w(payload);
  marshal::put_body(w, marshal::aside_body{ticket, offset, size, way->number, way->connection});
  wire::frame_header header;
  header.kind = wire::frame_kind::aside;
  core_.send(header, payload);
  return true;
}

/// Bytes that a graph's copy left in its block, for the client's box; a piece never crosses a row.
void cuda_session::send_block(const boxed_bytes& b) {
  constexpr std::uint64_t piece = 4u << 20;
  for (std::uint64_t at = 0; at < b.size;) {
    const std::uint64_t n = std::min({piece, b.row - at % b.row, b.size - at});
    core_.send_data({b.id | wire::graph_copy, at}, std::span(b.data + at, n));
    at += n;
  }
}

void cuda_session::ask_client(std::uint64_t number, const marshal::callback_body& errand) {
  std::vector<std::byte> payload;
  wire::writer w(payload);
  marshal::put_body(w, errand);
  wire::frame_header header;
  header.kind = wire::frame_kind::callback;
  header.ticket = number;
  core_.send(header, payload);
}

std::optional<room_message> cuda_session::room_for(std::int32_t device, std::uint64_t bytes) const {
  const auto at = static_cast<std::size_t>(device);
  if (at >= facts_.devices.size() || bytes > facts_.devices[at].total_memory) return std::nullopt;
  if (!quota_.allows(device, bytes)) return std::nullopt;
  return room_message{core_.account() && core_.account()->lacks(device, bytes),
                      {board_number(facts_.devices[at].pci_bus_id)}};
}

bool cuda_session::reserve_upload(std::uint64_t more) {
  std::uint64_t before = uploaded_.load();
  do {
    if (more > marshal::max_image_bytes - before) return false;
  } while (!uploaded_.compare_exchange_weak(before, before + more));
  return true;
}

void cuda_session::set_owner(std::uint64_t context, std::uint64_t owner) {
  if (owner) {
    owners_[context] = owner;
  } else {
    owners_.erase(context);
  }
}

bool cuda_session::has_failed() {
  const std::lock_guard lock(sticky_mutex_);
  return !sticky_told_.empty();
}

void cuda_session::forget_sticky(std::uint64_t context) {
  const std::lock_guard lock(sticky_mutex_);
  sticky_told_.erase(context);
}

void cuda_session::tell_sticky(std::uint64_t context, CUresult code, bool by_post) {
  {
    const std::lock_guard lock(sticky_mutex_);
    if (sticky_told_.contains(context)) return;
  }
  if (dumps_.expected()) {
    if (by_post) return;
    dumps_.finish();
  }
  {
    const std::lock_guard lock(sticky_mutex_);
    if (!sticky_told_.emplace(context, code).second) return;
  }
  wire::frame_header header;
  header.kind = wire::frame_kind::notice;
  header.context = context;
  const auto number = static_cast<std::int32_t>(code);
  core_.send(header, std::as_bytes(std::span(&number, 1)));
}

}  // namespace outboard::backend
