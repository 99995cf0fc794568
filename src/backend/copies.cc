// Handlers of copies between host and device. Bytes from the client go through a staging block, so the
// request is done when they are copied there; bytes to the client go out as data frames, before the reply
// that completes them.
#include "backend/ends.hh"
#include "backend/patience.hh"
#include "backend/session_core.hh"

namespace outboard::backend {
namespace {

using marshal::flavour;

/// The stream whose order the copy takes: cuMemcpy's own is the legacy (or per-thread) default stream.
CUstream stream_of(flavour how, CUstream asked) { return marshal::on_stream(how) ? asked : nullptr; }

bool known(flavour how) { return how < flavour::count; }

/// Copies of the synchronous kind are complete for the program when they return, whatever stream it uses
/// next: streams that do not synchronise with the default stream must see them. So the next request waits for
/// the last of them.
CUresult finish_if_synchronous(call& c, flavour how, CUstream stream) {
  if (marshal::on_stream(how)) return CUDA_SUCCESS;
  auto* sync =
      marshal::per_thread(how) ? c.driver().cuStreamSynchronize_ptsz : c.driver().cuStreamSynchronize;
  return sync(stream);
}

constexpr std::size_t quick = 64u << 10;  // sending this much never waits for a client that reads

constexpr std::size_t piece =
    4u << 20;  // of a copy to the host: small enough to overlap, large enough for full speed

struct copy_out {
  call& c;
  marshal::copy_out_body body;
  CUstream stream = nullptr;
  bool per_thread = false;

  CUresult enqueue(std::uint64_t offset, std::size_t size, staging::block& block) const {
    block = c.session.stage().take(size, c.header.context);
    if (!block.data) return CUDA_ERROR_OUT_OF_MEMORY;
    auto* copy = per_thread ? c.driver().cuMemcpyDtoHAsync_v2_ptsz : c.driver().cuMemcpyDtoHAsync_v2;
    auto* record = per_thread ? c.driver().cuEventRecord_ptsz : c.driver().cuEventRecord;
    CUresult code = copy(block.data, body.from + offset, size, stream);
    if (code == CUDA_SUCCESS && !block.done)
      code = c.driver().cuEventCreate(&block.done, CU_EVENT_DISABLE_TIMING);
    if (code == CUDA_SUCCESS) code = record(block.done, stream);
    if (code != CUDA_SUCCESS) c.session.stage().give_back(block);
    return code;
  }

  /// All pieces, each sent when it is complete; the next one is under way meanwhile.
  CUresult run() const {
    staging::block next;
    std::uint64_t enqueued = 0, sent = 0;
    CUresult code = CUDA_SUCCESS;
    std::deque<std::pair<staging::block, std::size_t>> under_way;
    while (code == CUDA_SUCCESS && sent < body.size) {
      while (code == CUDA_SUCCESS && enqueued < body.size && under_way.size() < 2) {
        const std::size_t size = std::min<std::uint64_t>(piece, body.size - enqueued);
        code = enqueue(enqueued, size, next);
        if (code == CUDA_SUCCESS) under_way.emplace_back(next, size), enqueued += size;
      }
      if (under_way.empty()) break;
      auto [block, size] = under_way.front();
      under_way.pop_front();
      const CUresult waited = c.driver().cuEventSynchronize(block.done);
      if (waited == CUDA_SUCCESS) send_bytes(sent, {block.data, size});
      c.session.stage().give_back(block);
      sent += size;
      if (code == CUDA_SUCCESS) code = waited;
    }
    for (auto& [block, size] : under_way) {
      c.driver().cuEventSynchronize(block.done);
      c.session.stage().give_back(block);
    }
    return code;
  }

  /// A small copy that is complete at once, as most are, needs no hand-off of the turn. False: too large,
  /// run() it.
  bool run_quickly(CUresult& code) const {
    if (body.size == 0 || body.size > quick) return false;
    staging::block block;
    code = enqueue(0, body.size, block);
    if (code != CUDA_SUCCESS) return true;
    CUresult state = CUDA_ERROR_NOT_READY;
    spin_while([&] { return (state = c.driver().cuEventQuery(block.done)) == CUDA_ERROR_NOT_READY; });
    if (state == CUDA_ERROR_NOT_READY) {
      c.give_up_turn();
      state = c.driver().cuEventSynchronize(block.done);
    }
    if (state == CUDA_SUCCESS) send_bytes(0, {block.data, body.size});
    c.session.stage().give_back(block);
    code = state;
    return true;
  }

  void send_bytes(std::uint64_t offset, std::span<const std::byte> bytes) const {
    std::array<std::byte, 16> prefix;
    std::memcpy(prefix.data(), &c.header.ticket, 8);
    std::memcpy(prefix.data() + 8, &offset, 8);
    wire::frame_header header;
    header.kind = wire::frame_kind::data;
    c.session.send(header, prefix, bytes);
  }

  void send_failure() const {
    if (c.header.kind == wire::frame_kind::post) send_bytes(wire::copy_failed, {});
  }
};

}  // namespace

outcome ends::cuMemcpyHtoD_v2(call& c) {
  const auto body = marshal::take_body<marshal::copy_in_body>(c.body);
  const std::span<const std::byte> bytes = c.body.rest();
  if (!c.body.ok() || !known(body.how) || bytes.size() > staging::largest) return outcome::malformed();
  if (c.refused != CUDA_SUCCESS) return outcome::answer(c.refused);
  CUstream asked = nullptr;
  if (const CUresult code = c.objects().resolve_stream(body.stream, asked); code != CUDA_SUCCESS) {
    return outcome::answer(code);
  }
  if (bytes.empty()) return outcome::answer(CUDA_SUCCESS);
  const CUstream stream = stream_of(body.how, asked);
  const bool per_thread = marshal::per_thread(body.how);
  if (c.header.kind == wire::frame_kind::call)
    c.give_up_turn();  // room, or the stream, may have to be waited for
  staging::block block = c.session.stage().take(bytes.size(), c.header.context);
  if (!block.data) return outcome::answer(CUDA_ERROR_OUT_OF_MEMORY);
  std::memcpy(block.data, bytes.data(), bytes.size());
  auto* copy = per_thread ? c.driver().cuMemcpyHtoDAsync_v2_ptsz : c.driver().cuMemcpyHtoDAsync_v2;
  CUresult code = copy(body.to, block.data, bytes.size(), stream);
  if (code != CUDA_SUCCESS) {
    c.session.stage().give_back(block);
    return outcome::answer(code);
  }
  c.session.stage().give_back_after(block, stream, per_thread);
  return outcome::answer(finish_if_synchronous(c, body.how, stream));
}

outcome ends::cuMemcpyDtoH_v2(call& c) {
  copy_out copy{c, marshal::take_body<marshal::copy_out_body>(c.body)};
  if (!c.body.finished() || !known(copy.body.how)) return outcome::malformed();
  CUresult code = c.refused;
  CUstream asked = nullptr;
  if (code == CUDA_SUCCESS) code = c.objects().resolve_stream(copy.body.stream, asked);
  if (code != CUDA_SUCCESS) return copy.send_failure(), outcome::answer(code);
  copy.stream = stream_of(copy.body.how, asked);
  copy.per_thread = marshal::per_thread(copy.body.how);
  if (c.header.kind == wire::frame_kind::call) {
    if (copy.run_quickly(code)) return outcome::answer(code);
    c.give_up_turn();
    return outcome::answer(copy.run());
  }
  for (std::uint64_t at = 0; code == CUDA_SUCCESS && at < copy.body.size; at += piece) {
    const std::size_t size = std::min<std::uint64_t>(piece, copy.body.size - at);
    staging::block block;
    code = copy.enqueue(at, size, block);
    if (code == CUDA_SUCCESS) c.session.outgoing_copies().add(c.header.ticket, at, size, block);
  }
  if (code != CUDA_SUCCESS) copy.send_failure();
  return outcome::answer(code);
}

}  // namespace outboard::backend
