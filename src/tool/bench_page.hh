// What `outboard bench` found, as a page for people, in Markdown, and as JSON, which `--compare` reads again.
// Values; main thread.
#pragma once

#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "base/machine.hh"
#include "base/result.hh"
#include "bench/summary.hh"
#include "bench/verdict.hh"

namespace outboard::tool {

/// The server's side as it was measured.
struct bench_server {
  std::string url, product, host;  ///< host: name, CPU, cores and kernel, as far as the server tells
  std::string transport;           ///< in words
  std::string device;              ///< its name, and what executes
};

struct bench_native {
  std::string device;      ///< its name, and the driver's library; empty: there is none
  std::string source;      ///< how and where it was measured
  std::string why_absent;  ///< where nothing native was measured
};

struct bench_page {
  std::string date;  ///< UTC
  double seconds = 0;
  int rounds = 0;
  std::uint64_t bulk = 0;
  machine_facts here;
  bool has_ours = true;  ///< false: `--native`
  bench_server server;
  bench_native native;
  std::vector<bench::compared_row> rows;
  std::vector<std::string> doubts;
};

/// At most 100 columns wide, but for words that are longer.
std::string text_page(const bench_page& page);
std::string markdown_page(const bench_page& page);
std::string json_page(const bench_page& page);

/// "Intel(R) ..., 16 cores, Linux 6.1": with its name in front.
std::string machine_text(const machine_facts& m);

/// What an earlier json_page() says of native runs.
struct earlier_native {
  bench_native native;
  std::uint64_t bulk = 0;
  std::vector<bench::compared_row> rows;  ///< native only
};

/// Of the text of such a file. An error: it is none, or has no native rows.
result<earlier_native> read_native(const std::string& text);

}  // namespace outboard::tool
