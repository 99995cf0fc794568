// A session out of one worker and into another: its records are fetched, and replayed on a fresh connection.
#include "base/log.hh"
#include "frontend/dial.hh"
#include "frontend/process.hh"
#include "frontend/settings.hh"
#include "marshal/cuda/bodies.hh"

namespace outboard::frontend {
namespace {

constexpr std::chrono::seconds patience{10};
constexpr std::size_t piece = 16u << 20;

template <class Body>
CUresult ask(session& server, lane& own, marshal::service what, const Body& body) {
  own.request.clear();
  wire::writer w(own.request);
  marshal::put_body(w, body);
  return server.call({static_cast<std::uint32_t>(what), own.id, 0, own.request, {}}, own.reply);
}

}  // namespace

CUresult process::export_records(std::vector<std::byte>& records) {
  lane& own = this_lane();
  if (const CUresult code = gate(own, false); code != CUDA_SUCCESS) return code;
  records.clear();
  memory_.freed().send(*session_, own.id);
  while (true) {
    const CUresult code =
        ask(*session_, own, marshal::service::records_export, marshal::export_body{records.size()});
    if (code != CUDA_SUCCESS) return code;
    wire::reader from(own.reply);
    const auto reply = marshal::take_body<marshal::export_reply>(from);
    if (!from.finished()) return session_->malformed_reply("records_export"), session::lost_code;
    const auto part = std::as_bytes(std::span(reply.part));
    records.insert(records.end(), part.begin(), part.end());
    if (records.size() >= reply.total || part.empty()) return CUDA_SUCCESS;
  }
}

CUresult process::rebuild(std::span<const std::byte> records) {
  const auto settings = client_settings();
  if (!settings) return log::error(settings.error().message), CUDA_ERROR_DEVICE_UNAVAILABLE;
  wire::hello hello = introduce_ourselves();
  hello.wanted = wire::purpose::session;
  hello.window_base = facts_.window_base;
  hello.window_slot_size = facts_.window_slot_size;
  auto dialed = dial_any(*settings, transports_, hello, transport::clock::now() + patience);
  if (!dialed) return log::error(dialed.error().message), CUDA_ERROR_DEVICE_UNAVAILABLE;
  const auto there = marshal::decode_snapshot(dialed->welcome.content);
  if (!there || there->devices.size() < facts_.devices.size() ||
      there->own_addresses != facts_.own_addresses) {
    log::error("this session cannot be rebuilt on ", dialed->url, ": other devices or addresses");
    return CUDA_ERROR_NOT_SUPPORTED;
  }
  session_->resume_on(std::move(dialed->connection));
  session_->session_id = dialed->welcome.session;
  use_session(*dialed, *settings);
  objects_.handles(api::handle_kind::context).each([](std::uint64_t, object& o) {
    static_cast<context_state&>(o).abandon_connections();
  });
  memory_.mirrors().forget_common();
  lane& own = this_lane();
  for (std::size_t at = 0; at < records.size(); at += piece) {
    const outgoing part{static_cast<std::uint32_t>(marshal::service::upload),
                        own.id,
                        0,
                        {},
                        records.subspan(at, std::min(piece, records.size() - at))};
    if (const CUresult code = session_->post(part); code != CUDA_SUCCESS) return code;
  }
  const CUresult code =
      ask(*session_, own, marshal::service::records_import, marshal::import_body{records.size()});
  // Memory shared with the old worker is ours alone now: kernels see it again the other way, by its copies.
  memory_.arena().unshare(0);
  return code;
}

CUresult process::ledger(marshal::ledger_reply& held) {
  lane& own = this_lane();
  if (const CUresult code = gate(own, false); code != CUDA_SUCCESS) return code;
  memory_.freed().send(*session_, own.id);
  own.request.clear();
  const CUresult code = session_->call(
      {static_cast<std::uint32_t>(marshal::service::ledger), own.id, 0, own.request, {}}, own.reply);
  if (code != CUDA_SUCCESS) return code;
  wire::reader from(own.reply);
  held = marshal::take_body<marshal::ledger_reply>(from);
  if (!from.finished()) return session_->malformed_reply("ledger"), session::lost_code;
  return CUDA_SUCCESS;
}

}  // namespace outboard::frontend
