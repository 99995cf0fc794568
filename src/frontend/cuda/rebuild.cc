// A session out of one worker and into another: its records are fetched, and replayed on a fresh connection.
#include "base/log.hh"
#include "frontend/cuda/process.hh"
#include "frontend/cuda/requests.hh"
#include "frontend/dial.hh"
#include "frontend/settings.hh"
#include "marshal/cuda/bodies.hh"

namespace outboard::frontend {
namespace {

constexpr std::chrono::seconds patience{10};
constexpr std::size_t piece = 16u << 20;

template <auto Op>
CUresult ask(session& server, lane& own, const marshal::request_of<Op>& body = {}) {
  return server.call(cuda::written<Op>(own.request, own.id, 0, body), own.reply);
}

}  // namespace

CUresult server_connection::export_records(std::vector<std::byte>& records) {
  lane& own = this_lane();
  if (const CUresult code = gate(own, false); code != CUDA_SUCCESS) return code;
  records.clear();
  process_.memory.freed.send(*session_, own.id);
  while (true) {
    const CUresult code = ask<marshal::service::records_export>(*session_, own, {.offset = records.size()});
    if (code != CUDA_SUCCESS) return code;
    const auto reply = cuda::read_reply<marshal::service::records_export>(own.reply);
    if (!reply)
      return cuda::malformed_reply(own, static_cast<std::uint32_t>(marshal::service::records_export));
    const auto part = std::as_bytes(std::span(reply->part));
    records.insert(records.end(), part.begin(), part.end());
    if (records.size() >= reply->total || part.empty()) return CUDA_SUCCESS;
  }
}

CUresult server_connection::rebuild(std::span<const std::byte> records) {
  const marshal::snapshot& facts = process_.devices.facts();
  const auto settings = client_settings();
  if (!settings) return log::error(settings.error().message), CUDA_ERROR_DEVICE_UNAVAILABLE;
  wire::hello hello = introduce_ourselves();
  hello.wanted = wire::purpose::session;
  hello.window_base = facts.window_base;
  hello.window_slot_size = facts.window_slot_size;
  auto dialed = dial_any(*settings, transports_, hello, transport::clock::now() + patience);
  if (!dialed) return log::error(dialed.error().message), CUDA_ERROR_DEVICE_UNAVAILABLE;
  const auto there = marshal::decode_snapshot(dialed->welcome.content);
  if (!there || there->devices.size() < facts.devices.size() || there->own_addresses != facts.own_addresses) {
    log::error("this session cannot be rebuilt on ", dialed->url, ": other devices or addresses");
    return CUDA_ERROR_NOT_SUPPORTED;
  }
  session_->resume_on(std::move(dialed->connection));
  session_->session_id = dialed->welcome.session;
  use_session(*dialed, *settings);
  process_.devices.abandon_connections();
  process_.memory.mirrors.forget_common();
  lane& own = this_lane();
  for (std::size_t at = 0; at < records.size(); at += piece) {
    const auto part = records.subspan(at, std::min(piece, records.size() - at));
    const CUresult code =
        session_->post(cuda::written<marshal::service::upload>(own.request, own.id, 0, {}, part));
    if (code != CUDA_SUCCESS) return code;
  }
  const CUresult code = ask<marshal::service::records_import>(*session_, own, {.size = records.size()});
  // Memory shared with the old worker is ours alone now: kernels see it again the other way, by its copies.
  process_.memory.arena.unshare(0);
  return code;
}

CUresult server_connection::ledger(marshal::ledger_reply& held) {
  lane& own = this_lane();
  if (const CUresult code = gate(own, false); code != CUDA_SUCCESS) return code;
  process_.memory.freed.send(*session_, own.id);
  const CUresult code = ask<marshal::service::ledger>(*session_, own);
  if (code != CUDA_SUCCESS) return code;
  if (const auto reply = cuda::read_reply<marshal::service::ledger>(own.reply))
    return held = *reply, CUDA_SUCCESS;
  return cuda::malformed_reply(own, static_cast<std::uint32_t>(marshal::service::ledger));
}

}  // namespace outboard::frontend
