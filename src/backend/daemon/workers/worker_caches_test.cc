// Which cache of compiled code a worker's driver gets, as the environment of the process says that is
// started. Shells take the place of workers: no GPU is needed for that.
#include <gtest/gtest.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <fstream>
#include <map>

#include "backend/confinement/confinement.hh"
#include "backend/daemon/workers/workers.hh"
#include "base/folder_testing.hh"

namespace outboard::backend {
namespace {

using namespace std::chrono_literals;
using clock = event_loop::clock;

/// Serves at once, and writes down what it was given. The remover of folders stays until the daemon is gone.
constexpr const char* worker_script =
    "case \"$*\" in *--remove-folders*) exec cat <&3 >/dev/null;; *--tidy*) exit 0;; *--warm*) ;; "
    "*) printf '\\003' >&3;; esac; echo \"$CUDA_CACHE_PATH $CUDA_CACHE_MAXSIZE\" >>OUT; exec sleep 100";

struct worker_caches_test : folder_test {
  worker_caches_test() : folder_test("worker-caches") {
    ::setenv("TMPDIR", base.c_str(), 1);
    log::set_level(log::level::off);
  }
  ~worker_caches_test() override {
    all.reset();
    ::unsetenv("TMPDIR");
    log::set_level(log::level::error);
  }

  void start(const std::string& device, bool several, std::uint32_t warm = 0) {
    std::string script = worker_script;
    script.replace(script.find("OUT"), 3, base + "/seen");
    const std::map<std::string, std::string> own{{"HOME", base + "/home"}, {"PATH", "/usr/bin:/bin"}};
    worker_settings settings;
    settings.command = {"/bin/sh", {"sh", "-c", script}};
    settings.device = device;
    settings.pool.per_key = settings.pool.burst = warm;
    settings.confine = confine_choice::possible;
    settings.compiler_cache.directory = base + "/kept";
    settings.compiler_cache.per_identity = 1000;
    settings.own_environment = [own](const char* name) -> const char* {
      const auto at = own.find(name);
      return at == own.end() ? nullptr : at->second.c_str();
    };
    all.emplace(loop, std::move(settings), [] {});
    all->set_places({}, several);
  }

  void begin(const std::string& identity, const char* asked = nullptr) {
    std::array<int, 2> ends{};
    ASSERT_EQ(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends.data()), 0);
    clients.emplace_back(ends[1]);
    accepted_session session;
    session.connection.reset(ends[0]);
    session.scheme = "unix";
    session.from = session.peer = session.identity = identity;
    session.images.scope = scope_of(identity, {});
    if (asked) session.hello.environment = {{"CUDA_CACHE_MAXSIZE", asked}};
    session.has = std::make_shared<const share>(share{.account = identity, .sessions = 100});
    ASSERT_FALSE(all->begin_session(std::move(session)));
  }

  /// What so many workers were given, in their order.
  std::vector<std::pair<std::string, std::string>> given_to(std::size_t count) {
    std::vector<std::pair<std::string, std::string>> given;
    for (const auto until = clock::now() + 5s; given.size() < count && clock::now() < until;) {
      bool over = false;
      loop.after(10ms, [&] { over = true; });
      while (!over) loop.run_once();
      given.clear();
      std::ifstream in(base + "/seen");
      for (std::string line; std::getline(in, line);)
        given.emplace_back(line.substr(0, line.find(' ')), line.substr(line.find(' ') + 1));
    }
    EXPECT_EQ(given.size(), count);
    given.resize(count);
    return given;
  }

  event_loop loop = std::move(*event_loop::make());
  std::optional<workers> all;
  std::vector<unique_fd> clients;
};

TEST_F(worker_caches_test, identities_of_one_server_share_no_compiled_code) {
  if (!confinement_lacks().empty())
    GTEST_SKIP() << "this kernel keeps no worker out: " << confinement_lacks();
  start("vendor", true);
  for (const char* who : {"token a", "token b", "token a", "anyone"}) begin(who);
  auto given = given_to(4);
  // They start side by side.
  std::ranges::sort(given);
  std::map<std::string, int> paths;
  for (const auto& [path, size] : given) ++paths[path];
  ASSERT_EQ(paths.size(), 3u) << "both of a have one";
  const std::string kept = base + "/kept/";
  EXPECT_EQ(std::ranges::count_if(paths, [&](const auto& p) { return p.first.starts_with(kept); }), 2);
  EXPECT_EQ(std::ranges::count_if(paths, [](const auto& p) { return p.second == 2; }), 1);
  const auto others = std::ranges::find_if(paths, [&](const auto& p) { return !p.first.starts_with(kept); });
  EXPECT_NE(others->first.find("/outboard-sessions"), std::string::npos)
      << "who could be anybody has one that goes with the session: " << others->first;
}

TEST_F(worker_caches_test, where_all_are_one_the_driver_keeps_it_where_it_would_anyway) {
  start("vendor", false);
  begin("token a");
  EXPECT_EQ(given_to(1).front(), std::pair(base + "/home/.nv/ComputeCache", std::string()));
}

TEST_F(worker_caches_test, a_client_does_not_say_how_much_of_the_disk_is_its) {
  start("vendor", false);
  begin("token a", "4000000000");
  EXPECT_EQ(given_to(1).front().second, "1000");
}

TEST_F(worker_caches_test, a_client_does_not_say_it_of_its_own_cache_either) {
  if (!confinement_lacks().empty())
    GTEST_SKIP() << "this kernel keeps no worker out: " << confinement_lacks();
  start("vendor", true);
  begin("token a", "4000000000");
  EXPECT_EQ(given_to(1).front().second, "500") << "half is for others of its sessions";
}

TEST_F(worker_caches_test, a_warm_worker_that_reads_what_one_identity_keeps_serves_no_other) {
  start("vendor", true, 1);
  begin("token a");
  (void)given_to(2);  // and the warm one
  begin("token b");
  (void)given_to(4);
  begin("token a");
  std::vector<bool> warm;
  for (const session_info& s : all->list_sessions()) warm.push_back(s.warm);
  EXPECT_EQ(warm, (std::vector<bool>{false, false, true}));
}

TEST_F(worker_caches_test, a_device_without_such_a_cache_has_warm_workers_for_everybody) {
  start("mock", true, 1);
  begin("token a");
  (void)given_to(2);
  begin("token b");
  EXPECT_TRUE(all->list_sessions().back().warm);
}

}  // namespace
}  // namespace outboard::backend
