#include "backend/identity/identity_book.hh"

#include <gtest/gtest.h>
#include <unistd.h>

namespace outboard::backend {
namespace {

constexpr rights usual = 3;

result<std::vector<std::string>> device_named(const std::vector<std::string>& wanted) {
  for (const std::string& one : wanted) {
    if (one != "0") return failure("no device " + one);
  }
  return std::vector<std::string>{"GPU-0"};
}

identity_settings table(const std::string& name) {
  identity_settings t;
  t.name = name;
  t.origin = "f:1";
  return t;
}

/// A user who is neither root nor ours, and a further one.
const std::uint32_t ann = ::geteuid() + 1001, bob = ann + 1;

proven_identity user(std::uint32_t number, std::vector<std::uint32_t> groups = {}) {
  return {"user " + std::to_string(number), number, std::move(groups)};
}

struct identity_book_test : testing::Test {
  identity_book_test() {
    identity_settings a = table("a"), b = table("b");
    a.users = {std::to_string(ann)};
    a.groups = {"501"};
    a.tokens = {"ci"};
    a.sessions = 2;
    a.devices = {"0"};
    b.groups = {"502", "503"};
    b.certificates = {"CN=bob"};
    b.may = 1;
    tables = {a, b};
  }
  share found(const proven_identity& who) {
    const auto book = identity_book::make(tables, device_named);
    EXPECT_TRUE(book.ok()) << book.error().message;
    const auto has = book->find(who, usual);
    EXPECT_TRUE(has.ok()) << has.error().message;
    return **has;
  }
  std::string problem() {
    const auto book = identity_book::make(tables, device_named);
    return book.ok() ? "" : book.error().message;
  }

  std::vector<identity_settings> tables;
};

TEST_F(identity_book_test, finds_users_groups_tokens_and_certificates) {
  EXPECT_EQ(found(user(ann)).account, "identity a");
  EXPECT_EQ(found(user(ann)).sessions, 2u);
  EXPECT_EQ(found(user(ann)).may, usual);
  EXPECT_EQ(found(user(ann)).devices, std::vector<std::string>{"GPU-0"});
  EXPECT_EQ(found(user(bob, {7, 501})).account, "identity a");
  EXPECT_EQ(found(user(bob, {503, 502})).account, "identity b");
  EXPECT_EQ(found(user(bob, {502})).may, 1u);
  EXPECT_EQ(found({"token ci"}).account, "identity a");
  EXPECT_EQ(found({"certificate CN=bob"}).account, "identity b");
}

TEST_F(identity_book_test, a_share_has_its_tables_name) {
  EXPECT_EQ(found(user(ann)).table, "a");
  EXPECT_EQ(found(user(ann)).name(), "a");
  tables.push_back(table("default"));
  EXPECT_EQ(found(user(bob)).table, "") << "the default is everybody's, each for himself";
  EXPECT_EQ(found(user(bob)).name(), "user " + std::to_string(bob));
}

TEST_F(identity_book_test, a_name_counts_before_a_group) {
  EXPECT_EQ(found(user(ann, {502})).account, "identity a");
}

TEST_F(identity_book_test, an_alternative_name_of_a_certificate_names_it_too) {
  tables[0].certificates = {"DNS:ann.lab", "URI:spiffe://lab/ann"};
  const proven_identity ann_by_name{.person = "certificate CN=ann", .also = {"certificate DNS:ann.lab"}};
  EXPECT_EQ(found(ann_by_name).account, "identity a");
  EXPECT_EQ(found({.person = "certificate CN=x", .also = {"certificate DNS:ann"}}).account,
            "certificate CN=x");
  // The subject counts first, and two names of two tables are one too many.
  EXPECT_EQ(found({.person = "certificate CN=bob", .also = {"certificate DNS:ann.lab"}}).account,
            "identity b");
  tables[1].certificates.push_back("DNS:bob.lab");
  const auto book = identity_book::make(tables, device_named);
  ASSERT_TRUE(book.ok());
  const auto both = book->find(
      {.person = "certificate CN=x", .also = {"certificate DNS:bob.lab", "certificate DNS:ann.lab"}}, usual);
  ASSERT_FALSE(both.ok());
  EXPECT_NE(both.error().message.find("has names of [identity.b] and of [identity.a]"), std::string::npos);
}

TEST_F(identity_book_test, others_are_each_for_themselves_with_what_the_default_says) {
  EXPECT_EQ(found(user(bob)).account, "user " + std::to_string(bob));
  EXPECT_EQ(found(user(bob)).sessions, std::nullopt);
  tables.push_back(table("default"));
  tables.back().sessions = 1;
  tables.back().may = 0;
  EXPECT_EQ(found(user(bob)).account, "user " + std::to_string(bob));
  EXPECT_EQ(found({"token x"}).account, "token x");
  for (const auto& who : {user(bob), proven_identity{"token x"}, proven_identity{"anyone"}}) {
    EXPECT_EQ(found(who).sessions, 1u);
    EXPECT_EQ(found(who).may, 0u);
  }
}

TEST_F(identity_book_test, nobody_is_taken_for_another_by_his_name) {
  // What a client says of itself is none of these; a token's name is its administrator's.
  EXPECT_EQ(found({"user " + std::to_string(ann)}).account, "user " + std::to_string(ann))
      << "no user by the kernel's word";
  EXPECT_EQ(found({"token ci "}).account, "token ci ");
  EXPECT_EQ(found({"certificate CN=bob,O=x"}).account, "certificate CN=bob,O=x");
  EXPECT_EQ(found(user(bob, {})).account, "user " + std::to_string(bob));
}

TEST_F(identity_book_test, root_and_the_servers_user_may_do_everything) {
  tables.push_back(table("default"));
  tables.back().may = 0;
  EXPECT_EQ(found(user(0)).may, all_rights);
  EXPECT_EQ(found(user(::geteuid())).may, all_rights);
  EXPECT_EQ(found({"token 0"}).may, 0u);
  for (const std::uint32_t number : {std::uint32_t{0}, static_cast<std::uint32_t>(::geteuid())}) {
    proven_identity by_munge = user(number);
    by_munge.by_munge = true;
    EXPECT_EQ(found(by_munge).may, 0u) << "another machine's word";
  }
}

TEST_F(identity_book_test, who_is_in_groups_of_two_is_told_to_be_named) {
  const auto book = identity_book::make(tables, device_named);
  const auto has = book->find(user(bob, {501, 502}), usual);
  ASSERT_FALSE(has.ok());
  EXPECT_EQ(has.error().message,
            "user " + std::to_string(bob) +
                " is in groups of [identity.a] and of [identity.b]; name it in `users` of the "
                "one that it belongs to");
}

TEST_F(identity_book_test, says_what_is_wrong_with_a_table) {
  tables[1].users = {"no such user"};
  EXPECT_EQ(problem(), "f:1: [identity.b]: there is no user \"no such user\"");
  tables[1].users = {"0" + std::to_string(ann)};
  EXPECT_NE(problem().find("which this table or another names already"), std::string::npos) << problem();
  tables[1].users = {};
  tables[1].groups = {"no such group"};
  EXPECT_EQ(problem(), "f:1: [identity.b]: there is no group \"no such group\"");
  tables[1].groups = {"0501"};
  EXPECT_NE(problem().find("has the number 501"), std::string::npos);
  tables[1].groups = {};
  tables[1].devices = {"3"};
  EXPECT_EQ(problem(), "f:1: [identity.b]: no device 3");
}

}  // namespace
}  // namespace outboard::backend
