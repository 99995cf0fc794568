#include "frontend/cuda/streamed_copy.hh"

#include <array>
#include <atomic>
#include <functional>
#include <vector>

#include "base/log.hh"
#include "frontend/copy_crew.hh"
#include "frontend/copy_pieces.hh"
#include "frontend/cuda/contexts.hh"
#include "frontend/cuda/remote.hh"
#include "marshal/data_bodies.hh"

namespace outboard::frontend::cuda {
namespace {

/// Pieces on the way: enough for every connection to have some, few enough for what the server keeps.
constexpr std::uint64_t window = 16;

enum class direction { to_device, to_host };

data_connections& connections_of(context_state& context, direction way) {
  return way == direction::to_device ? context.to_device : context.to_host;
}

/// New connections, and the tokens by which the server knows them. False: it has none for us.
bool dial_connections(data_connections::links& links, std::vector<marshal::share_token>& tokens) {
  const process& p = process::instance();
  const std::uint32_t count = p.data_connections();
  for (std::uint32_t i = 0; i < count; ++i) {
    auto made = p.open_data_connection();
    if (!made) {
      log::debug("no data connection: ", made.error().message);
      return false;
    }
    links.push_back(std::make_unique<data_link>());
    links.back()->connection = std::move(made->first);
    if (p.packs_pieces()) links.back()->packer.emplace();
    tokens.push_back(made->second);
  }
  return true;
}

bool open_connections(lane& own, direction way, data_connections& data) {
  marshal::data_open_body body;
  data_connections::links links;
  if (!dial_connections(links, body.tokens)) return false;
  if (way == direction::to_device) body.inward = static_cast<std::uint32_t>(links.size());
  request r(static_cast<api::opcode>(marshal::service::data_open), own);
  marshal::put_body(r.body(), body);
  if (r.call() != CUDA_SUCCESS) return false;
  wire::reader from = r.reply();
  const auto reply = marshal::take_body<marshal::data_open_reply>(from);
  if (!from.finished() || reply.outward.size() != links.size() - body.inward) return false;
  for (std::size_t i = 0; i < reply.outward.size(); ++i) links[i]->number = reply.outward[i];
  data.adopt(std::move(links));
  return true;
}

/// The connections are of one context, and so are their blocks.
bool of_current_context(const lane& own, const staged_copy& copy) {
  const auto block = process::instance().addresses().find(copy.device);
  return block && block->context == own.owner()->handle;
}

/// The connections of the current context, locked, if there are any and copies may use them.
class use_of_connections {
 public:
  use_of_connections(lane& own, direction way, const staged_copy& copy) {
    process& p = process::instance();
    if (p.data_connections() == 0 || p.synchronous() || p.server()->callbacks_expected() ||
        any_capture_open() || !of_current_context(own, copy)) {
      return;
    }
    data_connections& data = connections_of(*own.owner(), way);
    if (!data.use.try_lock()) return;
    if (!data.open()) prepare(own, way, data, copy.size);
    if (data.open()) {
      data_ = &data;
    } else {
      data.use.unlock();
    }
  }
  ~use_of_connections() {
    if (data_) data_->use.unlock();
  }
  use_of_connections(const use_of_connections&) = delete;

  explicit operator bool() const { return data_ != nullptr; }
  data_connections* operator->() { return data_; }
  data_connections& operator*() { return *data_; }

 private:
  static void prepare(lane& own, direction way, data_connections& data, std::uint64_t size) {
    data.wanted += size;
    if (data.refused || data.wanted < worth_preparing) return;
    data.wanted = 0;
    data.refused = !open_connections(own, way, data);
  }

  data_connections* data_ = nullptr;
};

/// One copy: what its threads share.
class work {
 public:
  work(lane& own, data_connections& data, const staged_copy& copy)
      : own_(own),
        copy_(copy),
        piece_(piece_of(copy.size, marshal::max_data_piece)),
        count_((copy.size + piece_ - 1) / piece_),
        first_(data.reserve(count_)) {}

  std::uint64_t count() const { return count_; }
  std::uint64_t number(std::uint64_t n) const { return first_ + n; }
  std::uint64_t device(std::uint64_t n) const { return copy_.device + n * piece_; }
  std::span<std::byte> bytes(std::uint64_t n) const {
    return {copy_.host + n * piece_, std::min(piece_, copy_.size - n * piece_)};
  }

  CUresult post_in(std::uint64_t n) {
    return post(marshal::service::data_in,
                marshal::data_in_body{device(n), bytes(n).size(), value_of(copy_.stream), number(n),
                                      copy_.how, n + 1 < count_});
  }
  CUresult post_out(std::uint64_t n, const data_link& over) {
    return post(marshal::service::data_out,
                marshal::data_out_body{device(n), bytes(n).size(), value_of(copy_.stream), number(n),
                                       copy_.how, over.number, over.pace.load(std::memory_order_relaxed)});
  }

  std::atomic<std::uint64_t> posted{0}, moved{0};
  std::atomic<bool> lost{false};  ///< a connection is

 private:
  template <class Body>
  CUresult post(marshal::service what, const Body& body) {
    request r(static_cast<api::opcode>(what), own_);
    marshal::put_body(r.body(), body);
    return r.post();
  }

  lane& own_;
  const staged_copy& copy_;
  const std::uint64_t piece_, count_, first_;
};

/// `step` moves one piece and says whether there was one, until `over`; what the program's thread does, and
/// those that help it.
template <class Over, class Step>
void keep_moving(Over&& over, Step&& step) {
  for (patience wait; !over();) {
    if (step()) {
      wait.restart();
    } else {
      wait.pause();
    }
  }
}

/// A thread for each connection, the program's own among them.
int helpers_for(const data_connections::links& links) { return static_cast<int>(links.size()) - 1; }

CUresult connection_lost() {
  process::instance().server()->lose_data_connection();
  return CUDA_ERROR_DEVICE_UNAVAILABLE;
}

/// Sends pieces, each over whatever connection is free.
class sending {
 public:
  sending(work& shared, const data_connections::links& links)
      : shared_(shared), links_(links), sent_(shared.count()) {}

  bool is_sent(std::uint64_t n) const { return sent_[n].load(std::memory_order_acquire); }
  bool all_begun() const { return next_.load() >= shared_.count(); }

  bool step() {
    for (const auto& link : links_) {
      const std::unique_lock use(link->use, std::try_to_lock);
      if (!use) continue;
      std::uint64_t n = next_.load();
      if (n >= shared_.count() || n >= shared_.posted.load(std::memory_order_acquire) + window ||
          !next_.compare_exchange_strong(n, n + 1))
        return false;
      if (send_piece(*link, shared_.number(n), shared_.bytes(n))) {
        sent_[n].store(true, std::memory_order_release);
      } else {
        shared_.lost.store(true);
      }
      return true;
    }
    return false;
  }

 private:
  work& shared_;
  const data_connections::links& links_;
  std::vector<std::atomic<bool>> sent_;
  std::atomic<std::uint64_t> next_{0};
};

/// Receives pieces: piece n comes over connection n modulo their count.
class receiving {
 public:
  receiving(work& shared, const data_connections::links& links) : shared_(shared), links_(links) {
    for (const auto& link : links_) link->taken = 0;
  }

  bool step() {
    for (std::size_t i = 0; i < links_.size(); ++i) {
      data_link& link = *links_[i];
      const std::unique_lock use(link.use, std::try_to_lock);
      if (!use) continue;
      const std::uint64_t n = link.taken * links_.size() + i;
      if (n >= shared_.posted.load(std::memory_order_acquire)) continue;
      ++link.taken;
      const auto code = receive_piece(link, shared_.number(n), std::array{shared_.bytes(n)});
      if (!code) {
        shared_.lost.store(true);
      } else if (*code != CUDA_SUCCESS) {
        CUresult none = CUDA_SUCCESS;
        failed_.compare_exchange_strong(none, *code);
      }
      shared_.moved.fetch_add(1, std::memory_order_acq_rel);
      return true;
    }
    return false;
  }
  CUresult code() const { return failed_.load(); }

 private:
  work& shared_;
  const data_connections::links& links_;
  std::atomic<CUresult> failed_{CUDA_SUCCESS};
};

}  // namespace

std::optional<CUresult> stream_in(lane& own, const staged_copy& copy) {
  use_of_connections data(own, direction::to_device, copy);
  if (!data) return std::nullopt;
  work shared(own, *data, copy);
  sending out(shared, data->all());
  CUresult code = CUDA_SUCCESS;
  const auto stopped = [&] { return shared.lost.load() || out.all_begun(); };
  const std::function<void()> help = [&] { keep_moving(stopped, [&] { return out.step(); }); };
  {
    const copy_crew::shift shift(copy_crew::instance(), help, helpers_for(data->all()));
    const auto over = [&] {
      return shared.lost.load() || code != CUDA_SUCCESS || shared.posted.load() == shared.count();
    };
    keep_moving(over, [&] {
      bool got_on = false;
      for (std::uint64_t n = shared.posted.load(); n < shared.count() && out.is_sent(n); ++n) {
        if ((code = shared.post_in(n)) != CUDA_SUCCESS) break;
        shared.posted.store(n + 1, std::memory_order_release);
        got_on = true;
      }
      // The server keeps what has come until it is told where to: the sooner, the fewer blocks it needs.
      if (got_on) process::instance().server()->send_posts();
      return out.step() || got_on;
    });
    if (code != CUDA_SUCCESS) shared.lost.store(true);  // those who help would wait for ever
  }
  if (code != CUDA_SUCCESS) data->abandon();  // pieces that nobody has asked for lie there
  process::instance().server()->add_aside({copy.size, 0});
  if (code == CUDA_SUCCESS && shared.lost.load()) code = connection_lost();
  return code;
}

std::optional<CUresult> stream_out(lane& own, const staged_copy& whole) {
  use_of_connections data(own, direction::to_host, whole);
  if (!data) return std::nullopt;
  staged_copy copy = whole;
  if (const CUresult code = copy_beginning(own, copy); code != CUDA_SUCCESS) return code;
  work shared(own, *data, copy);
  receiving in(shared, data->all());
  const data_connections::links& links = data->all();
  CUresult code = CUDA_SUCCESS;
  // What was posted comes, with bytes or a code, unless the connections are lost.
  const auto over = [&] {
    return shared.lost.load() || shared.moved.load(std::memory_order_acquire) == shared.count() ||
           (code != CUDA_SUCCESS && shared.moved.load() == shared.posted.load());
  };
  std::atomic<bool> stopped{false};
  const std::function<void()> help = [&] {
    keep_moving([&] { return stopped.load() || shared.lost.load(); }, [&] { return in.step(); });
  };
  {
    const copy_crew::shift shift(copy_crew::instance(), help, helpers_for(links));
    keep_moving(over, [&] {
      bool got_on = false;
      if (code == CUDA_SUCCESS) code = in.code();
      for (std::uint64_t n = shared.posted.load();
           code == CUDA_SUCCESS && n < shared.count() && n < shared.moved.load() + window; ++n) {
        code = shared.post_out(n, *links[n % links.size()]);
        if (code != CUDA_SUCCESS) break;
        shared.posted.store(n + 1, std::memory_order_release);
        got_on = true;
      }
      if (got_on) process::instance().server()->send_posts();
      return in.step() || got_on;
    });
    stopped.store(true);
  }
  process::instance().server()->add_aside({0, shared.moved.load() * (copy.size / shared.count())});
  if (shared.lost.load()) return connection_lost();
  return code != CUDA_SUCCESS ? code : in.code();
}

void stream_later(lane& own, const staged_copy& copy) {
  process& p = process::instance();
  if (p.data_connections() == 0 || p.synchronous() || !of_current_context(own, copy)) return;
  later_copies& later = own.owner()->later;
  const std::unique_lock lock(later.use, std::try_to_lock);
  if (!lock || later.tried) return;
  later.wanted += copy.size;
  if (later.wanted < worth_preparing || any_capture_open()) return;
  later.tried = true;
  marshal::data_open_body body;
  data_connections::links links;
  if (!dial_connections(links, body.tokens)) return;
  // Before the server knows them: it uses them at once.
  const std::uint64_t context = own.owner()->handle;
  body.later = p.server()->arrivals().adopt(context, std::move(links));
  request r(static_cast<api::opcode>(marshal::service::data_open), own);
  marshal::put_body(r.body(), body);
  if (r.call() != CUDA_SUCCESS) p.server()->arrivals().drop(context);
}

}  // namespace outboard::frontend::cuda
