#include "tool/bench_page.hh"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "base/clean_line.hh"
#include "base/version.hh"
#include "tool/ask.hh"
#include "tool/json_text.hh"
#include "tool/text.hh"

namespace outboard::tool {
namespace {

using bench::compared_row;
using bench::summary;
using nlohmann::json;

constexpr std::size_t width = 100;

/// Lines of at most `width`, the second and later ones with so many blanks in front.
std::string wrapped(std::string_view text, std::size_t indent) {
  std::string out, line;
  while (!text.empty()) {
    const std::size_t blank = std::min(text.find(' '), text.size());
    const std::string_view word = text.substr(0, blank);
    text.remove_prefix(std::min(text.size(), blank + 1));
    if (line.size() + 1 + word.size() > width && line.size() > indent) {
      out += line + "\n";
      line.assign(indent, ' ');
    } else if (!line.empty()) {
      line += ' ';
    }
    line += word;
  }
  return out + line + "\n";
}

/// Three digits that count.
std::string number(double value) {
  if (value >= 100) return fmt::format("{:.0f}", value);
  if (value >= 10) return fmt::format("{:.1f}", value);
  return value >= 1 ? fmt::format("{:.2f}", value) : fmt::format("{:.3f}", value);
}

std::string bulk_text(std::uint64_t bytes) {
  return bytes == 0 ? "more than 1 MiB" : std::to_string(bytes / bench::mebibyte) + " MiB";
}

std::string about(const compared_row& r, std::uint64_t bulk) {
  std::string text(r.what->about);
  constexpr std::string_view place = "{bulk}";
  if (const auto at = text.find(place); at != text.npos) text.replace(at, place.size(), bulk_text(bulk));
  return text;
}

void add_cells(std::vector<std::string>& cells, const std::optional<summary>& s) {
  cells.push_back(s ? number(s->median) : "-");
  cells.push_back(s ? number(s->lowest) + "-" + number(s->highest) : "-");
}

bool has_native(const bench_page& page) { return !page.native.device.empty(); }

std::vector<std::vector<std::string>> cells_of(const bench_page& page) {
  const bool native = has_native(page), both = native && page.has_ours;
  std::vector<std::string> head{"ROW", "UNIT"};
  if (native) head.insert(head.end(), {"NATIVE", "LOW-HIGH"});
  if (page.has_ours) head.insert(head.end(), {"OURS", "LOW-HIGH"});
  if (both) head.emplace_back("RATIO");
  std::vector<std::vector<std::string>> all{head};
  for (const compared_row& r : page.rows) {
    std::vector<std::string> cells{about(r, page.bulk) + (bench::is_doubtful(r) ? " !" : ""),
                                   std::string(bench::unit_text(r.what->in))};
    if (native) add_cells(cells, r.native);
    if (page.has_ours) add_cells(cells, r.ours);
    if (both) {
      const auto of = bench::ratio(r);
      const bool good = of && *bench::speed(r) >= 1;
      cells.push_back(of ? fmt::format("{:.2f}{}", *of, good ? " *" : "") : "-");
    }
    all.push_back(std::move(cells));
  }
  return all;
}

/// Labels and what stands behind them.
std::vector<std::pair<std::string, std::string>> facts(const bench_page& page) {
  std::vector<std::pair<std::string, std::string>> list{{"this machine", machine_text(page.here)}};
  if (page.has_ours) {
    list.emplace_back("server",
                      fmt::format("{} ({}): {}", page.server.url, page.server.product, page.server.host));
    list.emplace_back("transport", page.server.transport);
    list.emplace_back("device", page.server.device);
  }
  list.emplace_back("native", has_native(page) ? page.native.device + ", " + page.native.source
                                               : "not measured: " + page.native.why_absent);
  std::size_t native_runs = 0;  // an earlier page may have had others
  for (const compared_row& r : page.rows)
    native_runs = std::max(native_runs, r.native ? r.native->runs.size() : 0);
  std::string runs = std::to_string(page.rounds);
  if (page.has_ours && native_runs > 0) runs += fmt::format(" through Outboard, {} natively", native_runs);
  runs += fmt::format("; {:g} s together; the median counts, low-high are the ends", page.seconds);
  if (has_native(page) && page.has_ours)
    runs += "; ratio: ours / native, less is better for times, * as good as native or better";
  list.emplace_back("runs", runs);
  return list;
}

/// A sentence for each reason that rows lack a value, with their names.
std::vector<std::string> absences(const bench_page& page) {
  std::vector<std::pair<std::string, std::string>> by_reason;
  const auto note = [&](const compared_row& r, const char* way, const std::string& why) {
    const std::string reason = fmt::format("{}, because {}", way, why);
    const auto known = std::ranges::find(by_reason, reason, &std::pair<std::string, std::string>::first);
    if (known == by_reason.end())
      by_reason.emplace_back(reason, about(r, page.bulk));
    else
      known->second += "; " + about(r, page.bulk);
  };
  for (const compared_row& r : page.rows) {
    if (page.has_ours && !r.ours && !r.why_not_ours.empty()) note(r, "through Outboard", r.why_not_ours);
    if (has_native(page) && !r.native && !r.why_not_native.empty()) note(r, "natively", r.why_not_native);
  }
  std::vector<std::string> out;
  for (const auto& [reason, names] : by_reason)
    out.push_back(fmt::format("Not measured {}: {}.", reason, names));
  return out;
}

std::vector<std::string> sentences(const bench_page& page) {
  std::vector<std::string> list = absences(page);
  for (const std::string& doubt : page.doubts) list.push_back("Take care: " + doubt);
  return list;
}

/// A bar would end the cell.
std::string markdown_cell(std::string text) {
  for (std::size_t at = 0; (at = text.find('|', at)) != text.npos; at += 2) text.insert(at, 1, '\\');
  return text;
}

json summary_json(const std::optional<summary>& s) {
  if (!s) return nullptr;
  return {{"median", s->median}, {"lowest", s->lowest}, {"highest", s->highest}, {"runs", s->runs}};
}

json optional_json(const std::optional<double>& value) { return value ? json(*value) : json(); }

json row_json(const compared_row& r, std::uint64_t bulk) {
  return {{"name", r.what->name},
          {"about", about(r, bulk)},
          {"unit", bench::unit_text(r.what->in)},
          {"better", bench::higher_is_better(r.what->in) ? "higher" : "lower"},
          {"ours", summary_json(r.ours)},
          {"native", summary_json(r.native)},
          {"ratio", optional_json(bench::ratio(r))},
          {"why_not_ours", r.why_not_ours},
          {"why_not_native", r.why_not_native}};
}

std::string text_or(const json& j, const char* key, const char* otherwise) {
  const json& value = get(j, key);
  return value.is_string() ? clean_line(value.get<std::string>()) : otherwise;
}

}  // namespace

std::string machine_text(const machine_facts& m) {
  return fmt::format("{}: {}, {} cores, {}", m.host, m.cpu, m.cores, m.kernel);
}

std::string text_page(const bench_page& page) {
  std::string out = fmt::format("{}, what calls cost, {}\n", product, page.date);
  constexpr std::size_t indent = 15;
  for (const auto& [label, text] : facts(page))
    out += wrapped(label + std::string(indent - label.size() - 1, ' ') + " " + text, indent);
  out += "\n" + table(cells_of(page)) + "\n";
  for (const std::string& sentence : sentences(page)) out += wrapped(sentence, 0);
  return out + wrapped(bench::verdict(page.rows), 0);
}

std::string markdown_page(const bench_page& page) {
  std::string out = fmt::format("## {}, what calls cost, {}\n\n", product, page.date);
  for (const auto& [label, text] : facts(page)) out += fmt::format("- {}: {}\n", label, text);
  bool head = true;
  for (const auto& cells : cells_of(page)) {
    out += head ? "\n|" : "|";
    for (const std::string& cell : cells) out += fmt::format(" {} |", markdown_cell(cell));
    out += "\n";
    if (!head) continue;
    out += "|---|---|";
    for (std::size_t i = 2; i < cells.size(); ++i) out += "---:|";
    out += "\n";
    head = false;
  }
  for (const std::string& sentence : sentences(page)) out += "\n" + sentence + "\n";
  return out + "\n" + bench::verdict(page.rows) + "\n";
}

std::string json_page(const bench_page& page) {
  json rows = json::array();
  for (const compared_row& r : page.rows) rows.push_back(row_json(r, page.bulk));
  json j{{"product", product},
         {"date", page.date},
         {"seconds", page.seconds},
         {"rounds", page.rounds},
         {"bulk_bytes", page.bulk},
         {"machine",
          {{"host", page.here.host},
           {"cpu", page.here.cpu},
           {"kernel", page.here.kernel},
           {"cores", page.here.cores},
           {"load", page.here.load}}},
         {"server", nullptr},
         {"native", nullptr},
         {"why_not_native", page.native.why_absent},
         {"rows", rows},
         {"doubts", page.doubts},
         {"verdict", bench::verdict(page.rows)}};
  if (page.has_ours) {
    j["server"] = {{"url", page.server.url},
                   {"product", page.server.product},
                   {"host", page.server.host},
                   {"transport", page.server.transport},
                   {"device", page.server.device}};
  }
  if (has_native(page)) j["native"] = {{"device", page.native.device}, {"source", page.native.source}};
  return printed_json(j);
}

result<earlier_native> read_native(const std::string& text) {
  const json j = parse(text);
  const json& rows = get(j, "rows");
  if (!rows.is_array()) return failure("it is no page that `outboard bench --json` printed");
  earlier_native out;
  for (const json& each : rows) {
    const bench::row* what = bench::find_row(text_or(each, "name", ""));
    const json& runs = get(get(each, "native"), "runs");
    if (what == nullptr || !runs.is_array()) continue;
    std::vector<double> values;
    for (const json& value : runs) {
      if (value.is_number() && value.get<double>() > 0) values.push_back(value.get<double>());
    }
    out.rows.push_back({what, {}, bench::summarize(std::move(values))});
  }
  if (out.rows.empty())
    return failure("it has no native rows; make it with `outboard bench --native --json`");
  const json& bulk = get(j, "bulk_bytes");
  if (bulk.is_number_unsigned()) out.bulk = bulk.get<std::uint64_t>();
  const json& machine = get(j, "machine");
  out.native = {
      text_or(get(j, "native"), "device", "a device without a name"),
      fmt::format("measured on {} ({}, {}) at {}, not in turns with ours", text_or(machine, "host", "?"),
                  text_or(machine, "cpu", "?"), text_or(machine, "kernel", "?"), text_or(j, "date", "?")),
      ""};
  return out;
}

}  // namespace outboard::tool
