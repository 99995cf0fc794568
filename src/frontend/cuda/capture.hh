// The front-end's model of stream capture: which captures this process has opened. While none is open, what
// concerns capture is answered here. Any thread.
#pragma once

namespace outboard::frontend::cuda {

/// One relaxed load. While true, calls that are unsafe during capture must wait for the server's word.
bool any_capture_open();

}  // namespace outboard::frontend::cuda
