// Host functions of the client as functions of the device: each is enqueued as one of ours, which asks the
// client to run its own and holds the stream until the client says that it has. Bytes of copies that were
// complete before go out first. Owned by the session; any thread. The driver's threads may still be in run()
// when the session is over: what they touch outlives it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <thread>
#include <vector>

#include "api/cuda/headers.hh"
#include "marshal/cuda/bodies.hh"

namespace outboard::backend {

/// Memory here that stands for a host box of the client in the copies of a graph: without gaps, rows of `row`
/// bytes.
struct boxed_bytes {
  std::uint64_t id = 0, size = 0, row = 0;
  std::byte* data = nullptr;
  bool page_locked = false;
  unsigned times = 1;  ///< in a list of what copies write: so many of them write this
};

class host_calls {
 public:
  struct outside {
    std::function<void()> flush;  ///< sends the bytes of finished copies, and what kernels printed
    std::function<void(const boxed_bytes&)> send_block;
    /// Number 0: no answer is wanted.
    std::function<void(std::uint64_t number, const marshal::callback_body&)> ask;
    std::function<void()> asked;  ///< somebody waits for the client now
  };
  explicit host_calls(outside o);
  ~host_calls();
  host_calls(const host_calls&) = delete;
  host_calls& operator=(const host_calls&) = delete;

  struct shared;
  /// One host function of the client as the driver gets it (its user data).
  struct function {
    std::shared_ptr<shared> state;
    std::uint64_t id = 0;
    bool once = true;  ///< dies when it has run; else with the graph that holds it (destroyed())
    std::vector<boxed_bytes> before,
        after;          ///< in an executable graph: bytes that it may read; that later copies read again
    bool named = true;  ///< the client may forget the function when this goes
  };
  /// Owned by whoever gives it to the driver until one of these runs.
  function* make(std::uint64_t id, bool once);
  /// The same function for one executable graph, with its bytes; `of` lives longer.
  static function* with_blocks(const function& of, std::vector<boxed_bytes> before,
                               std::vector<boxed_bytes> after);
  static void CUDA_CB run(void* data);
  static void CUDA_CB run_callback(CUstream, CUresult status, void* data);
  /// The same without holding up whoever gives the last reference back.
  static void CUDA_CB run_destructor(void* data);
  /// A graph's user object: nothing will run it any more.
  static void CUDA_CB destroyed(void* data);

  /// The end of a launch: as a host function behind it sends these bytes, then says that it is over and lets
  /// go of `held`. Owned by whoever gives it to the driver until it runs, or by the caller of drop_end().
  void* make_end(std::vector<boxed_bytes> targets, std::shared_ptr<const void> held);
  static void CUDA_CB run_end(void* data);
  /// The driver did not take it.
  static void drop_end(void* data);

  /// Tells the client without waiting, in order with what it is asked. Works as long as the session does.
  std::function<void(const marshal::callback_body&)> messenger();
  void tell(const marshal::callback_body& errand) { messenger()(errand); }
  /// The client's answer. False: to a question never asked, or not what was asked for.
  bool answered(std::uint64_t number, std::span<const std::byte> bytes);
  /// Somebody waits for the client.
  bool waiting() const;
  /// Nobody waits, and everything that was to be told has been sent.
  bool is_quiet() const;
  /// The session is over: nobody waits any more, nothing is asked.
  void end();
  /// After end(): its thread has ended, and uses nothing any more.
  void join();

 private:
  void start();
  void serve();

  std::shared_ptr<shared> state_;
  outside out_;
  std::thread thread_;
};

}  // namespace outboard::backend
