#include "tool/server_log.hh"

#include <spdlog/sinks/stdout_sinks.h>
#include <spdlog/spdlog.h>

#include <array>
#include <atomic>
#include <cstdlib>
#include <memory>
#include <nlohmann/json.hpp>

#include "base/clean_line.hh"
#include "base/log_fields.hh"
#include "tool/json_text.hh"

namespace outboard::tool {
namespace {

enum class shape { console, json, journal };

// Set once at start; spdlog's logger is thread-safe.
std::shared_ptr<spdlog::logger> logger;
std::string speaker;
shape form = shape::console;

constexpr std::array<spdlog::level::level_enum, 5> spdlog_levels{
    spdlog::level::off, spdlog::level::err, spdlog::level::warn, spdlog::level::info, spdlog::level::debug};
// sd-daemon(3): <3> error, <4> warning, <6> information, <7> debug. Nothing is written at the first.
constexpr std::array<const char*, 5> priorities{"", "<3>", "<4>", "<6>", "<7>"};

// Relaxed: it only counts.
std::atomic<unsigned> lines{0};
unsigned limit = 0;

// What clients choose must not control a terminal that shows the log.
std::int64_t cleaned(std::int64_t number) { return number; }
double cleaned(double number) { return number; }
std::string cleaned(const std::string& text) { return clean_line(text); }

void write_line(log::level l, std::string_view line) {
  const auto index = static_cast<std::size_t>(l);
  std::string text(line);
  if (form == shape::json) {
    nlohmann::json object = nlohmann::json::object();
    for (const auto& [name, value] : log::fields_of_line())
      std::visit([&, to = std::string(name)](const auto& v) { object[to] = cleaned(v); }, value);
    object["who"] = speaker;
    object["level"] = log::name(l);
    object["text"] = text;
    text = json_text(object, -1, nlohmann::json::error_handler_t::replace);
    text.erase(0, 1);  // the pattern opens the object with the time
  } else if (form == shape::journal) {
    text = priorities[index] + text;
  }
  logger->log(spdlog_levels[index], "{}", text);
}

void take_line(log::level l, std::string_view line) {
  const unsigned before = limit == 0 ? 0 : lines.fetch_add(1, std::memory_order_relaxed);
  if (limit == 0 || before < limit) {
    write_line(l, line);
  } else if (before == limit) {
    write_line(log::level::warn, "too many lines: the rest is left out");
  }
}

using own_stderr = spdlog::sinks::stdout_sink_base<spdlog::details::console_mutex>;

/// A worker's descriptor 2 becomes the device's, whose words go to the client: ours stay ours.
std::FILE* own_stderr_file() {
  const int descriptor = ::fcntl(STDERR_FILENO, F_DUPFD_CLOEXEC, 3);
  std::FILE* file = descriptor < 0 ? nullptr : ::fdopen(descriptor, "w");
  return file ? file : stderr;
}

}  // namespace

void start_server_log(log::level most, log_format format, const std::string& who, unsigned most_lines) {
  limit = most_lines;
  speaker = who;
  form = format == log_format::json      ? shape::json
         : std::getenv("JOURNAL_STREAM") ? shape::journal
                                         : shape::console;
  logger = std::make_shared<spdlog::logger>(who, std::make_shared<own_stderr>(own_stderr_file()));
  logger->set_level(spdlog::level::debug);
  constexpr auto utc = spdlog::pattern_time_type::utc;
  switch (form) {
    case shape::console:
      logger->set_pattern("%Y-%m-%dT%H:%M:%S.%eZ %n: %l: %v", utc);
      break;
    case shape::json:
      logger->set_pattern("{\"time\":\"%Y-%m-%dT%H:%M:%S.%eZ\",%v", utc);
      break;
    case shape::journal:
      logger->set_pattern("%v");
      break;
  }
  log::set_level(most);
  log::set_sink(take_line);
}

}  // namespace outboard::tool
