// The gate: a confined process of the daemon that accepts the clients of tcp: and ends TLS. It has the
// server's key and nothing else: no files, no devices, no sessions. The daemon gets each client when its
// first message was TLS's, and talks with it through the gate until its hello is accepted; then a worker gets
// the client's own socket, and the gate has no part in the session. A gate can be replaced at any time by a
// new one, with another certificate, while the old one finishes what it has begun. Run by main(); one thread.
#pragma once

#include <sys/types.h>

namespace outboard::backend {

/// Runs until the daemon closes the control socket, or has replaced it.
int run_gate(pid_t parent);

}  // namespace outboard::backend
