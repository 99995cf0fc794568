// Writes a profile: events into a file, sums for the summary. The device's records come with the server's
// clock and are written with ours. Any thread, under a lock of its own; what comes after end() is dropped.
#pragma once

#include <cstdint>
#include <map>
#include <mutex>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "frontend/profile/profile_clock.hh"
#include "frontend/profile/profile_events.hh"
#include "frontend/profile/profile_notes.hh"
#include "frontend/profile/profile_source.hh"
#include "frontend/profile/profile_summary.hh"
#include "frontend/report_file.hh"
#include "frontend/session.hh"
#include "marshal/profile_bodies.hh"

namespace outboard::frontend {

class profile_writer final : public profile_receiver {
 public:
  /// `file`: as report_file::open() takes it; empty: none. `since`: on our clock, when what is to be shown
  /// begins; 0: now. False: there is nothing to write to. Once, first.
  bool begin(const std::string& file, bool summary, std::int64_t since = 0);

  void add_calls(const std::vector<profile_events::call>& calls);
  /// Those that have come together since the last time, and the names of threads.
  void add_notes();
  /// The program's ranges, marks and names, which any thread notes here.
  profile_notes& notes() { return notes_; }
  void add_traffic(const traffic& moved);
  /// Something to be known, now.
  void note(std::string_view what);
  /// What came so far is in the file, should the program be killed.
  void flush();

  /// One fetch of the device's records, which is a look at the clocks, too: the records of its last reply are
  /// written at its end, when it is known where the clocks stand then.
  void begin_fetch() override;
  /// A reply, and when its question left and it came, on our clock.
  void add(marshal::profile_take_reply&& reply, std::int64_t asked, std::int64_t answered) override;
  void end_fetch() override;

  /// Writes the rest, and the summary to stderr.
  void end(const traffic& moved);

 private:
  void write_records();
  void write(const annotated& a);
  void title_device(std::int64_t group, std::uint32_t device);
  void title_stream(std::int64_t group, std::uint32_t stream, std::uint32_t call);
  void write(api::work_record w);
  void write_traffic(const traffic& moved);

  std::mutex mutex_;  // guards what follows; never held while the server is asked
  bool summarise_ = false, ended_ = false;
  std::int64_t began_ = 0;
  std::int32_t process_ = 0;
  report_file file_;
  profile_clock clock_;
  profile_summary summary_;
  std::uint64_t dropped_ = 0;
  traffic told_{};
  std::vector<std::string> names_;
  std::vector<api::work_record> records_;
  /// For each group: the clocks' error and the program's name in its title.
  std::map<std::int64_t, std::pair<std::int64_t, std::string>> titles_;
  /// The program's names of streams that have a row.
  std::map<std::pair<std::int64_t, std::uint32_t>, std::string> rows_;

  profile_notes notes_;  // has locks of its own
};

}  // namespace outboard::frontend
