#include "backend/identity/identity_book.hh"

#include <gtest/gtest.h>
#include <unistd.h>

#include "base/config_file.hh"

namespace outboard::backend {
namespace {

config read(std::string_view text) {
  config c;
  const status applied = apply_config_text(c, text, "test.toml");
  EXPECT_TRUE(applied.ok()) << (applied.ok() ? "" : applied.error().message);
  resolve_identities(c);
  return c;
}

identity_book book_of(std::string_view text) {
  auto made = identity_book::make(read(text));
  EXPECT_TRUE(made.ok()) << (made.ok() ? "" : made.error().message);
  return made.ok() ? std::move(*made) : identity_book();
}

credential token(const std::string& name) { return {.name = name, .user = {}, .groups = {}}; }
/// Never the user who runs this test.
credential user(std::uint32_t number, std::vector<std::uint32_t> groups = {}) {
  return {.name = "user " + std::to_string(number), .user = number, .groups = std::move(groups)};
}

TEST(identity_book, without_rows_everybody_is_their_credential) {
  const identity_book book = book_of("");
  const shared_terms terms = book.terms_of(token("token lab"));
  EXPECT_EQ(terms->name, "token lab");
  EXPECT_EQ(terms->may.text(), "run, list, suspend");
  EXPECT_EQ(book.terms_of(user(4242))->name, "user 4242");
  EXPECT_FALSE(book.has_row_for(4242, {}));
  EXPECT_FALSE(book.names_local_users());
}

TEST(identity_book, a_row_without_members_is_for_the_token_of_its_name) {
  const identity_book book = book_of("[identity.lab-a]\nsessions = 3\nrights = [\"run\", \"list-all\"]\n");
  const shared_terms terms = book.terms_of(token("token lab-a"));
  EXPECT_EQ(terms->name, "lab-a");
  EXPECT_EQ(terms->sessions, 3u);
  EXPECT_EQ(terms->may.text(), "run, list-all");
  EXPECT_EQ(book.terms_of(token("token lab-b"))->name, "token lab-b");
}

TEST(identity_book, rows_begin_with_the_values_for_all_wherever_these_stand) {
  const identity_book book = book_of(
      "[identity.b]\nweight = 300\n[identity]\nweight = 50\nrunning = 2\n[identity.a]\npriority = 1\n");
  EXPECT_EQ(book.terms_of(token("token a"))->weight, 50u);
  EXPECT_EQ(book.terms_of(token("token a"))->running, 2u);
  EXPECT_EQ(book.terms_of(token("token b"))->weight, 300u);
  EXPECT_EQ(book.terms_of(token("anyone"))->weight, 50u);
}

TEST(identity_book, memory_is_limited_for_all_or_by_a_row) {
  const identity_book book = book_of(
      "[identity]\ndevice_memory = \"1GiB\"\nhost_memory = \"2GiB\"\n"
      "[identity.lab]\ndevice_memory = \"3GiB\"\nsession_host_memory = "
      "\"1MiB\"\n[identity.free]\ndevice_memory = 0\n");
  const auto limits = [&](const char* token) {
    return book.terms_of({.name = token, .user = {}, .groups = {}})->memory;
  };
  EXPECT_EQ(limits("token eve"), (memory_limits{1ull << 30, 2ull << 30, 0}));
  EXPECT_EQ(limits("token lab"), (memory_limits{3ull << 30, 2ull << 30, 1 << 20}));
  EXPECT_EQ(limits("token free"), (memory_limits{0, 2ull << 30, 0}));
}

TEST(identity_book, a_user_is_known_before_its_groups_and_groups_by_the_alphabet) {
  const identity_book book = book_of(
      "[identity.z]\nmembers = [\"group 7001\"]\n[identity.m]\nmembers = [\"group 7002\"]\n"
      "[identity.own]\nmembers = [\"user 4242\", \"token\"]\n");
  EXPECT_EQ(book.terms_of(user(4242, {7001}))->name, "own");
  EXPECT_EQ(book.terms_of(user(4243, {7001, 7002}))->name, "m");
  EXPECT_EQ(book.terms_of(user(4243, {7001}))->name, "z");
  EXPECT_EQ(book.terms_of(user(4243, {7003}))->name, "user 4243");
  EXPECT_EQ(book.terms_of(token("token"))->name, "own");
  EXPECT_TRUE(book.has_row_for(4243, {7002}));
  EXPECT_TRUE(book.names_local_users());
}

/// Only a token of that name is meant: the kernel's word for a user is no text that a peer sends.
TEST(identity_book, a_token_cannot_pose_as_a_user) {
  const identity_book book = book_of("[identity.own]\nmembers = [\"user 4242\"]\n");
  EXPECT_EQ(book.terms_of(token("user 4242"))->name, "user 4242");
  EXPECT_EQ(book.terms_of(token("own"))->name, "own");
  EXPECT_EQ(book.terms_of(token("own"))->may.text(), "run, list, suspend");
}

TEST(identity_book, whoever_runs_the_server_may_do_everything) {
  const identity_book book = book_of("[identity]\nrights = []\n");
  EXPECT_EQ(book.terms_of(user(::geteuid()))->may, rights::all());
  EXPECT_EQ(book.terms_of(user(0))->may, rights::all());
  EXPECT_EQ(book.terms_of(user(4242))->may.text(), "none");
}

TEST(identity_book, a_member_of_two_rows_is_an_error) {
  const auto made = identity_book::make(
      read("[identity.a]\nmembers = [\"user 4242\"]\n[identity.b]\nmembers = [\"user 4242\"]\n"));
  ASSERT_FALSE(made.ok());
  EXPECT_EQ(made.error().message, "identity.b: \"user 4242\" already belongs to the identity a");
}

TEST(identity_book, a_member_that_this_machine_does_not_know_is_an_error) {
  const auto user = identity_book::make(read("[identity.a]\nmembers = [\"user no-such-user\"]\n"));
  ASSERT_FALSE(user.ok());
  EXPECT_EQ(user.error().message, "identity.a: there is no user \"no-such-user\"");
  const auto group = identity_book::make(read("[identity.a]\nmembers = [\"group no-such-group\"]\n"));
  ASSERT_FALSE(group.ok());
}

TEST(identity_rows, wrong_ones_are_errors_that_say_what_is_accepted) {
  for (const auto& [text, part] : std::initializer_list<std::pair<const char*, const char*>>{
           {"[identity.\"a b\"]\n", "unknown identity \"a b\""},
           {"[identity.anyone]\n", "unknown identity \"anyone\""},
           {"[identity.a]\nright = []\n", "unknown key \"identity.a.right\""},
           {"[identity.a]\nrights = [\"fly\"]\n", "accepted: a list of run, list"},
           {"[identity.a]\nmembers = [\"user\"]\n", "identity.a.members has a bad value"},
           {"[identity.a]\nmembers = [\"host x\"]\n", "identity.a.members has a bad value"},
           {"[identity]\nmembers = [\"token\"]\n", "members stands in the row of an identity"},
           {"[identity.a]\nweight = 0\n", "a number from 1 to 10000"}}) {
    config c;
    const status applied = apply_config_text(c, text, "test.toml");
    ASSERT_FALSE(applied.ok()) << text;
    EXPECT_NE(applied.error().message.find(part), std::string::npos) << applied.error().message;
  }
}

}  // namespace
}  // namespace outboard::backend
