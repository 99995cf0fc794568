#include "frontend/nvml/monitor.hh"

#include <pthread.h>

#include <array>

#include "base/check.hh"
#include "base/log.hh"
#include "frontend/dial.hh"
#include "frontend/settings.hh"
#include "marshal/nvml/question.hh"
#include "transport/send_whole.hh"
#include "wire/make_frame.hh"
#include "wire/monitor.hh"

namespace outboard::frontend::nvml {
namespace {

using namespace api::nvml;
using transport::deadline;
using transport::io;

constexpr std::chrono::seconds connect_patience{10};
/// Answers that never change: a tool asks for some dozens a board.
constexpr std::size_t most_kept = 4096;

/// The longest that the server's helper lets a question wait, and what a real driver was seen to take (67 ms
/// for an inforom's checksum), with room.
constexpr std::chrono::seconds answer_patience{60};

}  // namespace

monitor& monitor::instance() {
  // Never destroyed: libraries ask from their destructors, in any order.
  static monitor* const the_one = new monitor;
  return *the_one;
}

void monitor::boot(add_transports add) {
  add_ = add;
  pthread_atfork(nullptr, nullptr, [] { monitor::instance().forked_child(); });
}

void monitor::forked_child() {
  // The mutex may be held by a thread that is not here; the connection is the parent's. Both are left behind.
  new (&mutex_) std::mutex;
  (void)connection_.release();
  users_.store(0);
  new (&kept_) std::map<kept_key, std::vector<std::byte>>;
  new (&texts_) marshal::nvml::text_pool;  // the old one's texts stay where they are
}

void monitor::shut_down() {
  const std::lock_guard lock(mutex_);
  ended_ = true;
  users_.store(0);
  disconnect(true);
}

nvmlReturn_t monitor::init() {
  const std::lock_guard lock(mutex_);
  if (ended_) return NVML_ERROR_UNKNOWN;
  if (users_.load() == 0 || !connection_) {
    if (const nvmlReturn_t code = connect(); code != NVML_SUCCESS) return code;
  }
  users_.fetch_add(1);
  return NVML_SUCCESS;
}

nvmlReturn_t monitor::shutdown() {
  const std::lock_guard lock(mutex_);
  if (users_.load() == 0) return NVML_ERROR_UNINITIALIZED;
  if (users_.fetch_sub(1) == 1) disconnect(true);
  return NVML_SUCCESS;
}

nvmlReturn_t monitor::connect() {
  const auto refuse = [&](const std::string& why) {
    // Tools try again and again: once is enough to know.
    if (!std::exchange(told_, true)) log::error("NVML: ", why);
    return NVML_ERROR_DRIVER_NOT_LOADED;
  };
  auto s = client_settings();
  if (!s.ok()) return refuse(s.error().message);
  if (s->log) log::set_level(*s->log);
  if (!transports_) {
    transports_ = std::make_unique<transport::registry>();
    if (const status added = add_(*transports_, s->plugins); !added.ok()) {
      transports_.reset();
      return refuse(added.error().message);
    }
  }
  wire::hello hello = introduce_ourselves();
  hello.wanted = wire::purpose_monitor;
  hello.environment.clear();
  auto got = dial_any(*s, *transports_, hello, transport::clock::now() + connect_patience);
  if (!got.ok()) return refuse(got.error().message);
  connection_ = std::move(got->connection);
  kept_.clear();
  told_ = false;
  return NVML_SUCCESS;
}

void monitor::disconnect(bool orderly) {
  if (connection_ && orderly) {
    const wire::frame_header goodbye{.kind = wire::frame_kind::goodbye, .ticket = ++last_ticket_};
    (void)transport::send_whole(*connection_, wire::make_frame(goodbye),
                                transport::clock::now() + answer_patience)
        .ok();
  }
  connection_.reset();
  kept_.clear();
}

bool monitor::exchange(std::uint32_t opcode, const std::vector<std::byte>& question,
                       std::vector<std::byte>& answer) {
  const std::uint64_t ticket = ++last_ticket_;
  const wire::frame_header asked{.kind = wire::frame_kind::call, .opcode = opcode, .ticket = ticket};
  const deadline until = transport::clock::now() + answer_patience;
  if (!transport::send_whole(*connection_, wire::make_frame(asked, question), until).ok()) return false;
  std::array<std::byte, wire::header_size> raw;
  if (transport::receive_whole(*connection_, raw, until) != io::done) return false;
  const auto header = wire::decode_header(raw, marshal::nvml::max_bytes);
  if (!header.ok() || header->kind != wire::frame_kind::reply || header->ticket != ticket) return false;
  answer.resize(header->size);
  return transport::receive_whole(*connection_, answer, until) == io::done;
}

nvmlReturn_t monitor::lost(const std::string& why) {
  log::error("NVML: ", why, "; nvmlShutdown and nvmlInit connect again");
  disconnect(false);
  return NVML_ERROR_GPU_IS_LOST;
}

nvmlReturn_t monitor::ask(const function_form& form, const words& arguments) {
  std::vector<std::byte> question, answer;
  wire::writer w(question);
  marshal::nvml::encode_question(w, form, arguments);
  const auto code = static_cast<std::uint32_t>(form.code);
  const std::lock_guard lock(mutex_);
  if (users_.load() == 0) return NVML_ERROR_UNINITIALIZED;
  if (!connection_) return NVML_ERROR_GPU_IS_LOST;
  nvmlReturn_t result = NVML_SUCCESS;
  if (form.fixed) {
    const auto known = kept_.find({code, question});
    if (known != kept_.end()) {
      wire::reader r(known->second);
      CHECK(marshal::nvml::decode_answer(r, form, arguments, result, texts_));
      return result;
    }
  }
  if (!exchange(code, question, answer)) return lost("the connection to the server is lost");
  wire::reader r(answer);
  if (!marshal::nvml::decode_answer(r, form, arguments, result, texts_))
    return lost("the server's answer was not understood");
  if (form.fixed && result == NVML_SUCCESS && kept_.size() < most_kept)
    kept_.emplace(kept_key{code, std::move(question)}, std::move(answer));
  return result;
}

nvmlReturn_t ask(opcode code, const words& arguments) {
  const function_form* form = find_form(static_cast<std::uint32_t>(code));
  CHECK(form != nullptr);
  if (!monitor::instance().initialised()) return NVML_ERROR_UNINITIALIZED;
  if (const nvmlReturn_t wrong = marshal::nvml::check_arguments(*form, arguments); wrong != NVML_SUCCESS)
    return wrong;
  return monitor::instance().ask(*form, arguments);
}

}  // namespace outboard::frontend::nvml
