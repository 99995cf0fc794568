#include "backend/session_fields.hh"

#include "wire/opencl_session.hh"

namespace outboard::backend {
namespace {

std::string api_name(bool cuda) { return cuda ? "CUDA" : "OpenCL"; }

}  // namespace

std::vector<log::field> client_fields(const accepted_session& waiting) {
  const wire::hello& hello = waiting.hello;
  return {{"api", api_name(hello.wanted != wire::purpose_opencl)},
          {"client", hello.product},
          {"from", waiting.from},
          {"host", hello.host},
          {"process", hello.process},
          {"program", hello.program},
          {"user", hello.user}};
}

std::vector<log::field> client_fields(const session_info& session) {
  return {{"api", api_name(session.cuda)}, {"client", session.client_product},  {"from", session.from},
          {"host", session.host},          {"process", session.client_process}, {"program", session.program},
          {"user", session.user}};
}

std::vector<log::field> session_fields(const session_info& session) {
  std::vector<log::field> fields = client_fields(session);
  fields.insert(fields.end(), {{"session", static_cast<std::int64_t>(session.id)},
                               {"worker", static_cast<std::int64_t>(session.worker)}});
  return fields;
}

}  // namespace outboard::backend
