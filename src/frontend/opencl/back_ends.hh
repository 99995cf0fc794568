// The OpenCL front-end's state in the program's process: its sessions with back-ends, which begin when
// platforms are first asked for, and what those back-ends' hosts have. The one singleton that the C ABI
// needs. Any thread.
#pragma once

#include <atomic>
#include <cstring>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "frontend/boot_options.hh"
#include "frontend/data_dialer.hh"
#include "frontend/host_functions.hh"
#include "frontend/opencl/build/sent_files.hh"
#include "frontend/opencl/objects.hh"
#include "frontend/session.hh"
#include "frontend/settings.hh"
#include "marshal/opencl/snapshot.hh"

namespace outboard::frontend::opencl {

struct device_info : object {
  marshal::opencl::device_facts facts;
  cl_platform_id platform = nullptr;
  needed<cl_device_id> parent;     ///< none: a device of the host, which lives as long as the process
  std::uint64_t memory_limit = 0;  ///< most bytes of it that the session may hold; 0: no limit
  /// The bytes of the device that this process's objects hold, if it is one of the host's and has a limit.
  std::atomic<std::uint64_t> held{0};

  /// A number among the facts; 0 if it is absent.
  template <class T>
  T number(cl_device_info name) const {
    const auto* found = marshal::opencl::find(facts.info, name);
    T value{};
    if (found && found->value.size() >= sizeof value) std::memcpy(&value, found->value.data(), sizeof value);
    return value;
  }
};

struct platform_info : object {
  std::string host;            ///< the host that has the platform
  bool shares_memory = false;  ///< this process and that host's can share pages
  std::vector<std::uint32_t>
      extension_functions;  ///< opcodes of the extension functions that the host's platform has
  std::vector<marshal::opencl::info_value> info;
  std::vector<cl_device_id> devices;
};

/// One of the program's back-ends. It lives as long as the process.
struct peer {
  std::unique_ptr<session> server;
  bool takes_files = false;  ///< it accepts files for builds
  bool has_areas = false;    ///< it can share areas for transfers
  data_dialer dialer;        ///< dials data connections
  sent_files files;
  host_functions functions;  ///< functions of the program that this back-end may call
  /// Bytes of released objects that commands may still use. An upper bound; the back-end knows the exact
  /// number.
  std::atomic<std::uint64_t> dying{0};
};

class back_ends {
 public:
  static back_ends& instance();

  void boot(const boot_options& options);
  void shut_down();
  void forked_child();

  /// The platforms of all back-ends; connects on the first call. Empty if there is no back-end (any more).
  const std::vector<cl_platform_id>& platforms();
  /// The session with the back-end that the call concerns (home.hh); nullptr: there is none (any more).
  session* server();
  /// Can that back-end share memory for transfers?
  bool has_areas();
  /// The program's functions that this back-end may call. Precondition: server() is not null.
  host_functions& functions();
  /// The files that this back-end has; nullptr: it accepts none for builds. Precondition: server() is not
  /// null.
  sent_files* files();
  /// Counts the bytes of all connections, including lost ones.
  traffic moved() const;
  bool synchronous() const { return synchronous_; }
  std::uint64_t next_number() { return ++last_number_; }

 private:
  enum class life : std::uint8_t { fresh, running, ended };
  void connect();
  /// On failure, the error says why that server serves us nothing.
  status connect_to(const settings& only);
  void adopt(marshal::opencl::snapshot snapshot, bool shares_memory);

  boot_options options_;
  std::atomic<life> life_{life::fresh};
  std::mutex connect_mutex_;
  bool tried_ = false;
  bool synchronous_ = false;
  transport::registry transports_;
  std::vector<std::unique_ptr<peer>> peers_;
  std::vector<cl_platform_id> platforms_;
  std::atomic<std::uint64_t> last_number_{0};
};

}  // namespace outboard::frontend::opencl
