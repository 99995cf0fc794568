#include "backend/identity/token_book.hh"

#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/stat.h>

#include <fstream>
#include <set>
#include <sstream>
#include <thread>

#include "base/folder_testing.hh"

namespace outboard::backend {
namespace {

using namespace std::chrono_literals;

std::span<const std::byte> bytes_of(std::string_view s) { return std::as_bytes(std::span(s)); }
wire::token_id id_of(const std::string& text) { return wire::verifier_of(bytes_of(text)).id; }

class tokens : public folder_test {
 protected:
  tokens() : folder_test("outboard-tokens") {}

  std::string create(const std::string& name, std::chrono::seconds lifetime = 0s) {
    auto made = create_named_token(path_, name, lifetime);
    EXPECT_TRUE(made.ok()) << made.error().message;
    return made.ok() ? *made : "";
  }
  token_book open(std::string_view shared = "") {
    const auto verifier = shared.empty() ? std::nullopt : std::optional(wire::verifier_of(bytes_of(shared)));
    auto book = token_book::open(verifier, path_);
    EXPECT_TRUE(book.ok());
    return std::move(*book);
  }
  std::string content() const {
    std::ostringstream text;
    text << std::ifstream(path_).rdbuf();
    return text.str();
  }

  const std::string path_ = base + "/state/tokens";
};

TEST_F(tokens, a_token_is_known_by_name_and_its_text_is_nowhere) {
  const std::string text = create("lab-a"), other = create("lab-b");
  EXPECT_NE(text, other);
  EXPECT_GE(text.size(), 32u);
  EXPECT_EQ(content().find(text.substr(3)), std::string::npos);
  struct stat about {};
  ASSERT_EQ(::stat(path_.c_str(), &about), 0);
  EXPECT_EQ(about.st_mode & 0777, 0600u);
  const token_book book = open();
  EXPECT_EQ(book.identity_of(id_of(text)), "token lab-a");
  EXPECT_EQ(book.identity_of(id_of(other)), "token lab-b");
  EXPECT_EQ(book.identity_of(id_of("a stranger's token")), "");
  EXPECT_FALSE(book.find(id_of("a stranger's token")));
  EXPECT_TRUE(book.find(id_of(text)));
}

TEST_F(tokens, network_clients_are_asked_for_one_even_when_all_were_revoked) {
  EXPECT_FALSE(open().asks(false));
  token_book book = open();
  create("a");
  const token_changes first = book.reload();
  EXPECT_TRUE(first.gone.empty());
  EXPECT_EQ(first.made, std::vector<std::string>{"token a"});
  EXPECT_TRUE(book.asks(false));
  EXPECT_FALSE(book.asks(true)) << "the kernel vouches for them";
  ASSERT_TRUE(revoke_named_token(path_, "a").ok());
  EXPECT_EQ(book.reload().gone, std::vector<std::string>{"token a"});
  EXPECT_EQ(book.named(), 0u);
  EXPECT_TRUE(book.asks(false));
  ::unlink(path_.c_str());
  EXPECT_TRUE(book.reload().gone.empty());
  EXPECT_TRUE(book.asks(false)) << "a lost file opens no door";
  EXPECT_TRUE(open("the shared token, long").asks(true));
}

TEST_F(tokens, a_token_made_anew_is_another_one) {
  const std::string old = create("a");
  token_book book = open();
  ASSERT_TRUE(revoke_named_token(path_, "a").ok());
  const std::string fresh = create("a");
  const token_changes changes = book.reload();
  EXPECT_EQ(changes.gone, std::vector<std::string>{"token a"});
  EXPECT_EQ(changes.made, changes.gone);
  EXPECT_FALSE(book.find(id_of(old)));
  EXPECT_TRUE(book.find(id_of(fresh)));
  EXPECT_TRUE(book.reload().gone.empty()) << "nothing has changed since";
}

TEST_F(tokens, expired_ones_say_so_and_let_nobody_in) {
  const std::string text = create("guest", 3600s), shared = "the shared token, long";
  const token_book book = open(shared);
  const std::time_t now = std::time(nullptr);
  EXPECT_EQ(book.problem_of(id_of(text), now), "");
  EXPECT_NE(book.problem_of(id_of(text), now + 3601).find("\"guest\" expired on 20"), std::string::npos);
  EXPECT_EQ(book.problem_of(id_of(shared), now + 3601), "");
  EXPECT_EQ(book.identity_of(id_of(shared)), "token");
}

TEST_F(tokens, a_damaged_file_changes_nothing_and_is_reported_once) {
  const std::string text = create("a");
  token_book book = open();
  const std::string good = content();
  std::ofstream(path_) << good << "b 12 34\n";
  const token_changes none = book.reload();
  EXPECT_TRUE(none.gone.empty());
  EXPECT_NE(none.problem.find("tokens:4: this line"), std::string::npos) << none.problem;
  EXPECT_TRUE(book.find(id_of(text)));
  const token_changes again = book.reload();
  EXPECT_TRUE(again.gone.empty());
  EXPECT_EQ(again.problem, "");
  EXPECT_FALSE(token_book::open({}, path_).ok()) << "a server does not start with half of its tokens";
  EXPECT_FALSE(create_named_token(path_, "c", 0s).ok());
}

TEST_F(tokens, a_revocation_is_seen_even_if_the_file_could_not_be_read_at_first) {
  create("a");
  token_book book = open();
  ASSERT_TRUE(revoke_named_token(path_, "a").ok());
  rlimit before{};
  ASSERT_EQ(::getrlimit(RLIMIT_NOFILE, &before), 0);
  const rlimit none{0, before.rlim_max};
  ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &none), 0);
  const token_changes first = book.reload(), again = book.reload();
  ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &before), 0);
  EXPECT_TRUE(first.gone.empty());
  EXPECT_NE(first.problem, "");
  EXPECT_EQ(again.problem, "") << "it is said once";
  EXPECT_EQ(book.reload().gone, std::vector<std::string>{"token a"});
}

TEST_F(tokens, users_that_the_kernel_vouches_for_show_the_shared_one_alone) {
  const std::string named = create("a"), shared = "the shared token, long";
  const token_book book = open(shared);
  EXPECT_TRUE(book.find(id_of(named)));
  EXPECT_FALSE(book.find(id_of(named), true));
  EXPECT_TRUE(book.find(id_of(shared), true));
}

TEST_F(tokens, what_is_cut_or_has_a_flipped_bit_is_read_or_refused) {
  create("a"), create("b", 60s);
  const std::string good = content();
  for (std::size_t length = 0; length < good.size(); length += 3) {
    std::ofstream(path_) << good.substr(0, length);
    const auto read = read_named_tokens(path_);
    EXPECT_TRUE(!read.ok() || read->size() <= 2);
  }
  for (std::size_t bit = 0; bit < good.size() * 8; bit += 7) {
    std::string bad = good;
    bad[bit / 8] = static_cast<char>(bad[bit / 8] ^ (1 << bit % 8));
    std::ofstream(path_) << bad;
    const auto read = read_named_tokens(path_);
    if (read.ok()) {
      for (const named_token& t : *read) EXPECT_TRUE(is_token_name(t.name));
    }
  }
}

TEST_F(tokens, names_are_plain_and_used_once) {
  create("a");
  for (const char* name : {"", "a b", "a\n", "../a", "ä", "a"}) {
    EXPECT_FALSE(create_named_token(path_, name, 0s).ok()) << name;
  }
  EXPECT_FALSE(create_named_token(path_, std::string(65, 'x'), 0s).ok());
  EXPECT_FALSE(revoke_named_token(path_, "b").ok());
}

TEST_F(tokens, several_may_be_made_at_once) {
  std::vector<std::thread> makers;
  for (int i = 0; i < 8; ++i) makers.emplace_back([&, i] { create("t" + std::to_string(i)); });
  for (auto& maker : makers) maker.join();
  const auto all = read_named_tokens(path_);
  ASSERT_TRUE(all.ok());
  std::set<std::string> names;
  for (const auto& t : *all) names.insert(t.name);
  EXPECT_EQ(names.size(), 8u);
}

}  // namespace
}  // namespace outboard::backend
