#include "base/configuration/settings.hh"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <set>

namespace outboard {
namespace {

TEST(settings, have_one_row_each_with_all_that_documents_need) {
  std::set<std::string> keys, variables;
  for (const setting& s : all_settings()) {
    EXPECT_TRUE(keys.insert(s.key()).second) << s.key();
    EXPECT_FALSE(s.accepted.empty() || s.meaning.empty()) << s.key();
    EXPECT_NE(s.readers, 0u) << s.key();
    EXPECT_TRUE(s.variable.empty() || variables.insert(std::string(s.variable)).second) << s.key();
    EXPECT_EQ(find_setting(s.section, s.name), &s);
  }
  EXPECT_EQ(find_setting("limits", "nothing"), nullptr);
  EXPECT_EQ(find_setting("limits.nothing"), nullptr);
}

/// A text that the setting takes and that means another value than the default: one of the words that
/// `accepted` lists, or what most kinds of settings take. Empty: none of them.
std::string another_value(const setting& s) {
  std::vector<std::string> candidates{"1", "0", "7", "64MiB", "8.6", "/a", "unix:/a"};
  std::string_view rest = s.accepted;
  while (!rest.empty()) {
    const std::size_t comma = std::min(rest.find(", "), rest.size());
    candidates.emplace_back(rest.substr(0, comma));
    rest.remove_prefix(std::min(comma + 2, rest.size()));
  }
  for (const std::string& text : candidates) {
    config c;
    const std::string before = s.text(c);
    if (set_by_text(c, s, s.name, text).ok() && s.text(c) == text && text != before) return text;
  }
  return {};
}

/// What a program or a worker is given as text must arrive as the same value.
TEST(settings, take_back_the_text_that_they_give) {
  config changed;
  // Those that deserve more than one of the simple values.
  std::map<std::string, std::string> values{{"server", "unix:/a,tcp:host:1"},
                                            {"token_file", "/t"},
                                            {"wait_seconds", "7"},
                                            {"trace", "/x"},
                                            {"sync", "1"},
                                            {"concurrent_managed", "0"},
                                            {"find_addresses", "0"},
                                            {"device", "cpu"},
                                            {"log", "debug"},
                                            {"rings", "0"},
                                            {"data_connections", "3"},
                                            {"compression", "0"},
                                            {"module_cache", "0"},
                                            {"listen", "shm:/s"},
                                            {"tokens_file", "/n"},
                                            {"insecure", "1"},
                                            {"allow_users", "ann,7"},
                                            {"log_format", "json"},
                                            {"limits.sessions", "9"},
                                            {"limits.running", "2"},
                                            {"limits.unauthenticated", "5"},
                                            {"limits.hello_seconds", "4"},
                                            {"limits.drain_seconds", "0"},
                                            {"limits.keepalive_seconds", "8"},
                                            {"pool.per_key", "0"},
                                            {"pool.burst", "1"},
                                            {"pool.most", "2"},
                                            {"pool.idle_minutes", "3"},
                                            {"cache.directory", "/c"},
                                            {"cache.size", "64MiB"},
                                            {"compiler_cache.directory", "/k"},
                                            {"compiler_cache.size", "0"},
                                            {"compiler_cache.per_identity", "1TiB"},
                                            {"tls", "require"},
                                            {"certificates.server", "/s"},
                                            {"certificates.client", "/c"},
                                            {"worker.confine", "require"},
                                            {"worker.reads", "/opt/one,/opt/two"},
                                            {"worker.writes", "/var/w"},
                                            {"devices.visible", "1,GPU-ab"},
                                            {"devices.name", "Lab {name}"},
                                            {"devices.memory", "8GiB"},
                                            {"cpu.compute_capability", "8.6"},
                                            {"cpu.memory", "1GiB"},
                                            {"cpu.cores", "2"},
                                            {"cpu.kernel_timeout_seconds", "9"}};
  for (const setting& s : all_settings()) {
    const std::string simple = another_value(s);
    EXPECT_FALSE(simple.empty()) << s.key() << " takes none of the values that this test knows";
    values.emplace(s.key(), simple);
  }
  EXPECT_EQ(values.size(), all_settings().size());
  const config untouched;
  for (const auto& [key, text] : values) {
    const setting* s = find_setting(key);
    ASSERT_NE(s, nullptr) << key;
    ASSERT_TRUE(set_by_text(changed, *s, key, text).ok()) << key;
    EXPECT_EQ(s->text(changed), text) << key;
    EXPECT_NE(s->text(untouched), text) << key << ": not another value than the default";
  }
  for (const reader by : {reader::program, reader::server, reader::worker}) {
    config again;
    for (const auto& [s, text] : changed_settings(changed, by)) {
      EXPECT_TRUE(set_by_text(again, *s, s->name, text).ok()) << s->key();
      EXPECT_EQ(s->text(again), s->text(changed)) << s->key();
    }
    EXPECT_TRUE(changed_settings(untouched, by).empty());
  }
}

TEST(settings, that_are_switches_take_words_and_digits_as_text) {
  for (const setting& s : all_settings()) {
    if (s.form != value_form::flag) continue;
    for (const auto& [text, as] : {std::pair("true", "1"), {"false", "0"}, {"1", "1"}, {"0", "0"}}) {
      config c;
      EXPECT_TRUE(set_by_text(c, s, s.variable, text).ok()) << s.key() << " " << text;
      EXPECT_EQ(s.text(c), as) << s.key() << " " << text;
    }
    config c;
    for (const char* const text : {"", "yes", "True", "2", "01", "true "})
      EXPECT_FALSE(set_by_text(c, s, s.variable, text).ok()) << s.key() << " " << text;
    // In a file a text is no switch.
    EXPECT_FALSE(s.set(c, {.is = std::string("true"), .untyped = false, .folder = ""}).ok()) << s.key();
  }
}

TEST(settings, refuse_texts_that_are_no_values_and_change_nothing) {
  for (const setting& s : all_settings()) {
    if (s.accepted == "a path" || s.name == "allow_users" || s.name == "visible" || s.name == "name")
      continue;
    config c;
    const std::string before = s.text(c);
    const status set = set_by_text(c, s, "--flag", "no such value");
    EXPECT_FALSE(set.ok()) << s.key();
    EXPECT_TRUE(set.error().message.starts_with("--flag")) << set.error().message;
    EXPECT_EQ(s.text(c), before) << s.key();
  }
}

TEST(settings, a_trace_may_go_to_stderr_and_a_relative_one_begins_at_its_file) {
  config c;
  const setting& s = *find_setting("trace");
  const auto given = [&](const char* text) {
    EXPECT_TRUE(s.set(c, {.is = std::string(text), .untyped = false, .folder = "/etc/outboard"}).ok())
        << text;
    return c.trace;
  };
  EXPECT_EQ(given("-"), "-");
  EXPECT_EQ(given("t.%p"), "/etc/outboard/t.%p");
  EXPECT_EQ(given("+t"), "+/etc/outboard/t");
  EXPECT_EQ(given("+/t"), "+/t");
  EXPECT_FALSE(set_by_text(c, s, "--trace", "+").ok());
  EXPECT_FALSE(set_by_text(c, s, "--trace", "").ok());
}

}  // namespace
}  // namespace outboard
