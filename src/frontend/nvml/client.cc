#include "frontend/nvml/client.hh"

#include <pthread.h>

#include <array>

#include "api/nvml/functions.hh"
#include "base/check.hh"
#include "base/log.hh"
#include "frontend/dial.hh"
#include "frontend/settings.hh"
#include "marshal/nvml/question.hh"
#include "wire/frame.hh"
#include "wire/monitor.hh"

namespace outboard::frontend::nvml {
namespace {

using namespace api::nvml;
using transport::deadline;
using transport::io;

constexpr std::chrono::seconds connect_patience{10};
/// Answers that never change are kept; a tool asks for a few dozen for each board.
constexpr std::size_t most_kept = 4096;

/// The longest time that the server's helper lets a question wait, plus the longest that a real driver was
/// seen to take (67 ms for an inforom's checksum), with a margin.
constexpr std::chrono::seconds answer_patience{60};

bool receive_all(transport::connection& from, std::span<std::byte> into, deadline until) {
  while (!into.empty()) {
    const transport::io_result got = from.receive(into, until);
    if (got.status == io::interrupted) continue;
    if (got.status != io::done) return false;
    into = into.subspan(got.bytes);
  }
  return true;
}

bool send_frame(transport::connection& to, const wire::frame_header& header,
                std::span<const std::byte> payload) {
  std::array<std::byte, wire::header_size> raw;
  wire::encode_header(header, raw);
  const std::array<iovec, 2> parts{iovec{raw.data(), raw.size()},
                                   iovec{const_cast<std::byte*>(payload.data()), payload.size()}};
  return to.send(parts, transport::clock::now() + answer_patience).status == io::done;
}

}  // namespace

client& client::instance() {
  // Never destroyed: libraries call from their destructors, in any order.
  static client* const the_one = new client;
  return *the_one;
}

void client::boot(add_transports add) {
  add_ = add;
  pthread_atfork(nullptr, nullptr, [] { client::instance().forked_child(); });
}

void client::forked_child() {
  // The mutex may be held by a thread that does not exist in the child, and the connection is the parent's.
  // Both are abandoned.
  new (&mutex_) std::mutex;
  (void)connection_.release();
  users_.store(0);
  new (&kept_) std::map<kept_key, std::vector<std::byte>>;
  new (&texts_) marshal::nvml::text_pool;  // the old pool's texts stay where they are
}

void client::shut_down() {
  const std::lock_guard lock(mutex_);
  ended_ = true;
  users_.store(0);
  disconnect(true);
}

nvmlReturn_t client::init() {
  const std::lock_guard lock(mutex_);
  if (ended_) return NVML_ERROR_UNKNOWN;
  if (users_.load() == 0 || !connection_) {
    if (const nvmlReturn_t code = connect(); code != NVML_SUCCESS) return code;
  }
  users_.fetch_add(1);
  return NVML_SUCCESS;
}

nvmlReturn_t client::shutdown() {
  const std::lock_guard lock(mutex_);
  if (users_.load() == 0) return NVML_ERROR_UNINITIALIZED;
  if (users_.fetch_sub(1) == 1) disconnect(true);
  return NVML_SUCCESS;
}

nvmlReturn_t client::connect() {
  const auto refuse = [&](const std::string& why) {
    // Tools try again and again, so the reason is logged once.
    if (!std::exchange(reported_, true)) log::error("NVML: ", why);
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
  reported_ = false;
  return NVML_SUCCESS;
}

void client::disconnect(bool orderly) {
  if (connection_ && orderly)
    send_frame(*connection_, {.kind = wire::frame_kind::goodbye, .ticket = ++last_ticket_}, {});
  connection_.reset();
  kept_.clear();
}

bool client::exchange(std::uint32_t opcode, const std::vector<std::byte>& question,
                      std::vector<std::byte>& answer) {
  const std::uint64_t ticket = ++last_ticket_;
  if (!send_frame(*connection_,
                  {.size = static_cast<std::uint32_t>(question.size()),
                   .kind = wire::frame_kind::call,
                   .opcode = opcode,
                   .ticket = ticket},
                  question)) {
    return false;
  }
  const deadline until = transport::clock::now() + answer_patience;
  std::array<std::byte, wire::header_size> raw;
  if (!receive_all(*connection_, raw, until)) return false;
  const auto header = wire::decode_header(raw, marshal::nvml::max_bytes);
  if (!header.ok() || header->kind != wire::frame_kind::reply || header->ticket != ticket) return false;
  answer.resize(header->size);
  return receive_all(*connection_, answer, until);
}

nvmlReturn_t client::lost(const std::string& why) {
  log::error("NVML: ", why, "; nvmlShutdown and nvmlInit connect again");
  disconnect(false);
  return NVML_ERROR_GPU_IS_LOST;
}

nvmlReturn_t client::ask(const function_form& form, const words& arguments) {
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
    return lost("the server's reply to " + std::string(find_function(code)->name) + " is malformed");
  if (form.fixed && result == NVML_SUCCESS && kept_.size() < most_kept)
    kept_.emplace(kept_key{code, std::move(question)}, std::move(answer));
  return result;
}

nvmlReturn_t ask(opcode code, const words& arguments) {
  const function_form* form = find_form(static_cast<std::uint32_t>(code));
  CHECK(form != nullptr);
  if (!client::instance().initialised()) return NVML_ERROR_UNINITIALIZED;
  if (const nvmlReturn_t wrong = marshal::nvml::check_arguments(*form, arguments); wrong != NVML_SUCCESS)
    return wrong;
  return client::instance().ask(*form, arguments);
}

}  // namespace outboard::frontend::nvml
