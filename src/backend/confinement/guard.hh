// What each process of a server does first, confined or not: it keeps its memory and descriptors, among which
// are the token and clients' connections, from other processes of its user. Called before anything of a
// client's is read, while the process has one thread.
#pragma once

namespace outboard::backend {

/// Added to what the kernel considers when it chooses which process to end for lack of memory (-1000 to
/// 1000).
inline constexpr int end_workers_first = 500;

/// Who may look into a process. `user`: also its own user's processes, as NVIDIA's driver does for
/// checkpoints (580: without that they end with CUDA_ERROR_OPERATING_SYSTEM).
enum class looked_into_by { root, user };

/// From now on only root can trace this process, read /proc/PID/mem or open what is in /proc/PID/fd, unless
/// others are allowed to; it and the processes that it starts leave no core files. The kernel is told
/// `out_of_memory_score`; 0: what the parent was told stays. What the system does not allow is logged.
void guard_this_process(int out_of_memory_score = 0, looked_into_by who = looked_into_by::root);

}  // namespace outboard::backend
