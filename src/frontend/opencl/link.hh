// The OpenCL front-end's state in the program's process: its sessions with back-ends, made at the first
// question for platforms, and the platforms of those back-ends' hosts. The one singleton that the C ABI
// needs. Any thread.
#pragma once

#include <atomic>
#include <cstring>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "frontend/data_dialer.hh"
#include "frontend/host_functions.hh"
#include "frontend/opencl/build/sent_files.hh"
#include "frontend/opencl/objects.hh"
#include "frontend/process.hh"
#include "frontend/session.hh"
#include "frontend/settings.hh"
#include "marshal/opencl/snapshot.hh"

namespace outboard::frontend::opencl {

struct device_info : object {
  marshal::opencl::device_facts facts;
  cl_platform_id platform = nullptr;
  needed<cl_device_id> parent;     ///< none: a device of the host, which lives as long as the process
  std::uint64_t memory_limit = 0;  ///< most bytes that the session may hold of it; 0: no limit
  /// For a device of the host with a limit: what this process's objects take of it.
  std::atomic<std::uint64_t> held{0};

  /// A number among the facts; 0 where there is none.
  template <class T>
  T number(cl_device_info name) const {
    const auto* found = marshal::opencl::find(facts.info, name);
    T value{};
    if (found && found->value.size() >= sizeof value) std::memcpy(&value, found->value.data(), sizeof value);
    return value;
  }
};

struct platform_info : object {
  std::string host;            ///< whose platform it is
  bool shares_memory = false;  ///< this process and that host's can have the same pages
  std::vector<marshal::opencl::info_value> info;
  std::vector<std::uint32_t> extension_functions;  ///< opcodes of those that the host's platform has
  std::vector<cl_device_id> devices;
};

/// One of the program's back-ends. It lives as long as the process.
struct peer {
  std::unique_ptr<session> server;
  bool takes_files = false;   ///< for builds
  bool has_areas = false;     ///< for transfers
  bool records_work = false;  ///< for profiles
  std::string url;
  data_dialer dialer;  ///< of data connections
  sent_files files;
  host_functions functions;  ///< of the program, that this back-end may ask for
  /// Bytes of objects that were released and may still be in use: an upper bound; the back-end knows the
  /// exact value.
  std::atomic<std::uint64_t> dying{0};
};

class link {
 public:
  static link& instance();

  void boot(const boot_options& options);
  void shut_down();
  void forked_child();

  /// The platforms of all back-ends; connects on the first call. None if there is no back-end, or no longer
  /// one.
  const std::vector<cl_platform_id>& platforms();
  /// The session with the back-end that the call concerns (home.hh); nullptr: there is none, or no longer
  /// one.
  session* server();
  /// Whether that back-end can share memory for transfers.
  bool has_areas();
  /// Of the same back-end; with server().
  host_functions& functions();
  /// For the same back-end; with server(). nullptr: it takes no files for builds.
  sent_files* files();
  /// What went over the connections, including those that have ended.
  traffic moved() const;
  bool synchronous() const { return synchronous_; }
  std::uint64_t next_number() { return ++last_number_; }

 private:
  enum class life : std::uint8_t { fresh, running, ended };
  void connect();
  /// An error says why that server provides nothing.
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
