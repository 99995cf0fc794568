#include "backend/daemon/session_fields.hh"

#include "wire/opencl_session.hh"

namespace outboard::backend {
namespace {

std::string api_name(bool cuda) { return cuda ? "CUDA" : "OpenCL"; }

std::string identity_name(const std::string& person, const share_ptr& has) {
  return has ? has->name() : person;
}

audit_fields proven(const std::string& person, const share_ptr& has, const std::string& from) {
  return {{"by", person}, {"identity", identity_name(person, has)}, {"from", from}};
}

audit_fields claimed(const std::string& host, std::int32_t process, const std::string& program,
                     const std::string& user) {
  return {{"host", host}, {"process", process}, {"program", program}, {"user", user}};
}

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

audit_fields proven_fields(const accepted_session& session) {
  return proven(session.identity, session.has, session.from);
}

audit_fields proven_fields(const session_info& session) {
  audit_fields fields = proven(session.identity, session.has, session.from);
  fields.insert(fields.begin(), {"session", static_cast<std::int64_t>(session.id)});
  return fields;
}

audit_fields claimed_fields(const accepted_session& session) {
  const wire::hello& hello = session.hello;
  return claimed(hello.host, hello.process, hello.program, hello.user);
}

audit_fields claimed_fields(const session_info& session) {
  return claimed(session.host, session.client_process, session.program, session.user);
}

}  // namespace outboard::backend
