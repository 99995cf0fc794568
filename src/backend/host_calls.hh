// Host functions of the client as functions of the device: each is enqueued as one of ours, which asks the
// client to run its own and holds the stream until the client says that it has. Bytes of copies that were
// complete before go out first. Owned by the session; any thread. The driver's threads may still be in run()
// when the session is over: what they touch outlives it.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <set>
#include <thread>

#include "api/cuda/headers.hh"
#include "marshal/bodies.hh"

namespace outboard::backend {

class host_calls {
 public:
  struct outside {
    std::function<void()> flush;  ///< sends the bytes of finished copies, and what kernels printed
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
  };
  /// Owned by whoever gives it to the driver until one of these runs.
  function* make(std::uint64_t id, bool once);
  static void CUDA_CB run(void* data);
  static void CUDA_CB run_callback(CUstream, CUresult status, void* data);
  /// A graph's user object: nothing will run it any more.
  static void CUDA_CB destroyed(void* data);

  /// Tells the client without waiting, in order with what it is asked.
  void tell(const marshal::callback_body& errand);
  /// The client's answer. False: to a question never asked.
  bool answered(std::uint64_t number);
  /// Somebody waits for the client.
  bool waiting() const;
  /// The session is over: nobody waits any more, nothing is asked.
  void end();

 private:
  void serve();

  std::shared_ptr<shared> state_;
  outside out_;
  std::thread thread_;
};

}  // namespace outboard::backend
