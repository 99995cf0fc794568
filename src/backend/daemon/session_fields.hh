// Who a session's client is, as values with names, for the lists that `outboard sessions` prints and for the
// fields of the log's lines. Pure functions.
#pragma once

#include <string>
#include <vector>

#include "backend/daemon/audit.hh"
#include "backend/daemon/workers/workers.hh"
#include "base/log_fields.hh"

namespace outboard::backend {

/// api, client, from, host, process, program, user.
std::vector<log::field> client_fields(const accepted_session& waiting);
std::vector<log::field> client_fields(const session_info& session);

/// The same of a session that has a worker, with its number and the worker's.
std::vector<log::field> session_fields(const session_info& session);

/// For the audit file. Who it is by proof or the kernel's word: by, identity, from.
audit_fields proven_fields(const accepted_session& session);
audit_fields proven_fields(const session_info& session);
/// And by its own: host, process, program, user.
audit_fields claimed_fields(const accepted_session& session);
audit_fields claimed_fields(const session_info& session);

}  // namespace outboard::backend
