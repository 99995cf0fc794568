// The records of a session, out of one worker and into another: every request that made what is alive, in
// ticket order. Contents of device memory are not part of them: the client reads and writes those with
// ordinary copies.
#include <algorithm>

#include "backend/cuda/code/code.hh"
#include "backend/cuda/ends.hh"
#include "backend/cuda/graph/graph_handles.hh"
#include "backend/cuda/replace/parts.hh"
#include "backend/cuda/session.hh"

namespace outboard::backend {
namespace {

constexpr std::size_t part = 8u << 20;

std::vector<std::uint8_t> as_numbers(std::span<const std::byte> bytes) {
  const auto* first = reinterpret_cast<const std::uint8_t*>(bytes.data());
  return {first, first + bytes.size()};
}

bool loads_code(std::uint32_t opcode) {
  const api::object_change does = api::about(static_cast<api::opcode>(opcode)).object;
  return does == api::object_change::loads_module || does == api::object_change::loads_library;
}

/// Graphs are told apart from the calls that made them.
bool makes_graph(std::uint32_t opcode) {
  const api::graph_change does = api::about(static_cast<api::opcode>(opcode)).graph;
  return does == api::graph_change::creates || does == api::graph_change::clones ||
         does == api::graph_change::ends_capture;
}

void add_records(const server_object& object, bool with_image, std::vector<marshal::record_body>& all) {
  for (const record& r : object.records) {
    if (makes_graph(r.opcode)) continue;
    marshal::record_body out{r.ticket, r.context, r.opcode, as_numbers(r.payload), {}};
    const loaded_code* code = with_image && loads_code(r.opcode) ? code_of(object) : nullptr;
    if (code) out.image = as_numbers(code->image.encoded());
    all.push_back(std::move(out));
  }
}

void by_ticket(std::vector<marshal::record_body>& all) {
  std::ranges::stable_sort(all, {}, &marshal::record_body::ticket);
}

/// False: something of the session cannot be made again.
bool collect(call& c, std::vector<marshal::record_body>& all) {
  if (!graph_records(c, all)) return false;
  c.objects().each([&](std::uint64_t, const server_object& object) { add_records(object, true, all); });
  for (const mapping& m : c.session.memory().all()) {
    std::vector<std::byte> payload;
    wire::writer w(payload);
    if (m.imported) {  // comes back while the other session lives, and is on the same server
      marshal::put_body(w, marshal::share_open_body{*m.imported, m.address});
    } else {
      marshal::put_body(w, marshal::map_body{m.address, m.size});
    }
    const auto what = m.imported ? api::opcode::cuIpcOpenMemHandle_v2 : api::opcode::cuMemAlloc_v2;
    all.push_back({m.ticket, m.context, static_cast<std::uint32_t>(what), as_numbers(payload), {}});
  }
  for (const pool_block& b : c.session.memory().all_pooled()) {
    std::vector<std::byte> payload;
    wire::writer w(payload);
    if (b.imported) {
      marshal::put_body(w, marshal::share_pointer_body{b.made.pool, b.made.address, *b.imported});
    } else {
      marshal::put_body(w, b.made);
    }
    const auto what = b.imported ? api::opcode::cuMemPoolImportPointer : api::opcode::cuMemAllocAsync;
    all.push_back({b.ticket, b.context, static_cast<std::uint32_t>(what), as_numbers(payload), {}});
  }
  for (const mirrored& m : c.session.mirrors().all()) {
    std::vector<std::byte> payload;
    wire::writer w(payload);
    const bool managed = m.kind == marshal::host_block::managed;
    if (managed) {
      marshal::put_body(w, marshal::managed_body{m.size, m.address, m.flags});
    } else {
      marshal::put_body(w, marshal::host_map_body{m.address, m.size, m.device_address, m.kind});
    }
    const auto what = managed ? api::opcode::cuMemAllocManaged : api::opcode::cuMemHostGetDevicePointer_v2;
    all.push_back({m.ticket, m.context, static_cast<std::uint32_t>(what), as_numbers(payload), {}});
  }
  if (c.session.virtual_memory().host_bytes() != 0) return false;  // its pages are the client's, too
  for (marshal::record_body& r : c.session.virtual_memory().records()) all.push_back(std::move(r));
  by_ticket(all);
  return true;
}

}  // namespace

bool object_records(call& c, std::vector<marshal::record_body>& contexts,
                    std::vector<marshal::record_body>& rest) {
  if (!graph_records(c, rest)) return false;
  c.objects().each([&](std::uint64_t id, const server_object& object) {
    const bool is_context = wire::handle{id}.kind() == static_cast<std::uint8_t>(api::handle_kind::context);
    add_records(object, !c.session.is_loaded_there(id), is_context ? contexts : rest);
  });
  by_ticket(contexts), by_ticket(rest);
  return true;
}

CUresult replay_record(call& c, const marshal::record_body& r) {
  const auto image = std::as_bytes(std::span(r.image)), payload = std::as_bytes(std::span(r.payload));
  c.take_upload();
  if (!c.session.reserve_upload(image.size())) return CUDA_ERROR_INVALID_VALUE;
  c.own.upload.assign(image.begin(), image.end());
  wire::frame_header header;
  header.kind = wire::frame_kind::call;
  header.opcode = r.opcode;
  header.lane = c.own.id;
  header.ticket = r.ticket;
  header.context = r.context;
  return c.session.replay(c.own, header, {payload.begin(), payload.end()});
}

outcome ends::records_export(call& c, const marshal::export_body& body) {
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
  marshal::export_reply reply;
  reply.total = buffer.size();
  reply.part = as_numbers(std::span(buffer).subspan(body.offset, size));
  marshal::put_body(c.reply, reply);
  if (body.offset + size == buffer.size()) buffer = {};
  return outcome::answer(CUDA_SUCCESS);
}

outcome ends::records_import(call& c, const marshal::import_body& body) {
  const std::vector<std::byte> bytes = c.take_upload();
  if (bytes.size() != body.size) return outcome::malformed();
  wire::reader from(bytes);
  std::int64_t replayed = 0;
  CUresult code = CUDA_SUCCESS;
  while (from.ok() && !from.rest().empty() && code == CUDA_SUCCESS) {
    const auto r = marshal::take_body<marshal::record_body>(from);
    if (!from.ok()) return outcome::malformed();
    code = replay_record(c, r);
    ++replayed;
  }
  c.keep_outputs_on_error = true;
  marshal::put_body(c.reply, marshal::number_reply{replayed});
  return outcome::answer(code);
}

}  // namespace outboard::backend
