// The records of a session, out of one worker and into another: every request that made what is alive, in
// ticket order. Contents of device memory are not part of them: the client reads and writes those with
// ordinary copies.
#include <algorithm>

#include "api/cuda/line_words.hh"
#include "backend/cuda/code/code.hh"
#include "backend/cuda/cuda_session.hh"
#include "backend/cuda/ends.hh"
#include "backend/cuda/graph/graph_handles.hh"

namespace outboard::backend {
namespace {

constexpr std::size_t part = 8u << 20;

std::vector<std::uint8_t> as_numbers(std::span<const std::byte> bytes) {
  const auto* first = reinterpret_cast<const std::uint8_t*>(bytes.data());
  return {first, first + bytes.size()};
}

bool loads_code(const record& made_by) {
  return api::says(static_cast<api::opcode>(made_by.opcode), api::line_word::loads_code);
}

/// Graphs are told apart from the calls that made them.
bool makes_graph(const record& made_by) {
  return api::says(static_cast<api::opcode>(made_by.opcode), api::line_word::makes_graph);
}

/// False: something of the session cannot be made again.
bool collect(call& c, std::vector<marshal::record_body>& all) {
  if (!graph_records(c, all)) return false;
  c.objects().each([&](const server_object& object) {
    for (const record& r : object.records) {
      if (makes_graph(r)) continue;
      marshal::record_body out{r.ticket, r.context, r.opcode, as_numbers(r.payload), {}};
      const loaded_code* code = loads_code(r) ? code_of(object) : nullptr;
      if (code) out.image = as_numbers(code->image.encoded());
      all.push_back(std::move(out));
    }
  });
  for (const mapping& m : c.session.memory().all()) {
    // What was imported comes back while the other session lives, and is on the same server.
    const auto payload = m.imported ? marshal::payload_of(marshal::share_open_body{*m.imported, m.address})
                                    : marshal::payload_of(marshal::map_body{m.address, m.size});
    const auto what = m.imported ? api::opcode::cuIpcOpenMemHandle_v2 : api::opcode::cuMemAlloc_v2;
    all.push_back({m.ticket, m.context, static_cast<std::uint32_t>(what), as_numbers(payload), {}});
  }
  for (const pool_block& b : c.session.memory().all_pooled()) {
    const auto payload =
        b.imported
            ? marshal::payload_of(marshal::share_pointer_body{b.made.pool, b.made.address, *b.imported})
            : marshal::payload_of(b.made);
    const auto what = b.imported ? api::opcode::cuMemPoolImportPointer : api::opcode::cuMemAllocAsync;
    all.push_back({b.ticket, b.context, static_cast<std::uint32_t>(what), as_numbers(payload), {}});
  }
  for (const mirrored& m : c.session.mirrors().all()) {
    const bool managed = m.kind == marshal::host_block::managed;
    const auto payload =
        managed ? marshal::payload_of(marshal::managed_body{m.size, m.address, m.flags})
                : marshal::payload_of(marshal::host_map_body{m.address, m.size, m.device_address, m.kind});
    const auto what = managed ? api::opcode::cuMemAllocManaged : api::opcode::cuMemHostGetDevicePointer_v2;
    all.push_back({m.ticket, m.context, static_cast<std::uint32_t>(what), as_numbers(payload), {}});
  }
  for (marshal::record_body& r : c.session.virtual_memory().records()) all.push_back(std::move(r));
  std::stable_sort(all.begin(), all.end(), [](const auto& a, const auto& b) { return a.ticket < b.ticket; });
  return true;
}

}  // namespace

outcome ends::records_export(call& c, const marshal::export_body& body, marshal::export_reply& reply) {
  std::vector<std::byte>& buffer = c.session.export_buffer();
  if (body.offset == 0) {
    buffer.clear();
    wire::writer w(buffer);
    std::vector<marshal::record_body> all;
    if (!collect(c, all)) return outcome::answer(CUDA_ERROR_NOT_SUPPORTED);
    for (const marshal::record_body& r : all) marshal::put_body(w, r);
  }
  if (body.offset > buffer.size()) return outcome::malformed();
  const std::size_t size = std::min<std::uint64_t>(part, buffer.size() - body.offset);
  reply.total = buffer.size();
  reply.part = as_numbers(std::span(buffer).subspan(body.offset, size));
  if (body.offset + size == buffer.size()) buffer = {};
  return outcome::answer(CUDA_SUCCESS);
}

outcome ends::records_import(call& c, const marshal::import_body& body,
                             std::optional<marshal::number_reply>& reply) {
  const auto uploaded = c.take_upload();
  if (!uploaded) return outcome::answer(CUDA_ERROR_OUT_OF_MEMORY);
  const std::vector<std::byte>& bytes = *uploaded;
  if (bytes.size() != body.size) return outcome::malformed();
  wire::reader from(bytes);
  std::int64_t replayed = 0;
  CUresult code = CUDA_SUCCESS;
  while (from.ok() && !from.rest().empty() && code == CUDA_SUCCESS) {
    const auto r = marshal::take_body<marshal::record_body>(from);
    if (!from.ok()) return outcome::malformed();
    const auto image = std::as_bytes(std::span(r.image));
    (void)c.take_upload();
    const auto room = c.session.reserve_upload(image.size());
    if (room == cuda_session::upload_room::too_much) return outcome::malformed();
    if (room == cuda_session::upload_room::no_memory) return outcome::answer(CUDA_ERROR_OUT_OF_MEMORY);
    c.own.upload.assign(image.begin(), image.end());
    wire::frame_header header;
    header.kind = wire::frame_kind::call;
    header.opcode = r.opcode;
    header.lane = c.header.lane;
    header.ticket = r.ticket;
    header.context = r.context;
    const auto payload = std::as_bytes(std::span(r.payload));
    code = c.session.replay(c.own, header, {payload.begin(), payload.end()});
    ++replayed;
  }
  reply = {replayed};
  return outcome::answer(code);
}

}  // namespace outboard::backend
