#include "transport/tls/openssl/engine.hh"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

// Peers that no end of ours would be: the test drives OpenSSL itself.
namespace outboard::transport::tls {
namespace {

using ::testing::HasSubstr;

extern "C" library* outboard_tls_library(const char* interface);

/// A client in the engine's coat, whose OpenSSL object stays in reach.
struct open_client {
  owned<SSL_CTX, SSL_CTX_free> context{SSL_CTX_new(TLS_client_method())};
  SSL* ssl = SSL_new(context.get());
  openssl_engine by{ssl, false, nullptr};
};

class peers : public ::testing::Test {
 protected:
  void SetUp() override {
    library* const own = outboard_tls_library(library_interface);
    ASSERT_NE(own, nullptr);
    const auto pem = own->make_certificate("gpubox");
    ASSERT_TRUE(pem.ok());
    auto made = own->make_server({*pem, *pem, "", false});
    ASSERT_TRUE(made.ok());
    context_ = *made;
    server_ = context_->start("");
    while (client_.by.shake() != step::done) {
      hand_over(client_.by, *server_);
      ASSERT_NE(server_->shake(), step::failed) << server_->problem();
      hand_over(*server_, client_.by);
    }
    hand_over(client_.by, *server_);
    ASSERT_EQ(server_->shake(), step::done);
    hand_over(*server_, client_.by);  // tickets
    std::array<std::byte, 1> nothing;
    ASSERT_EQ(client_.by.read(nothing), 0);
  }

  /// What one has to say is what comes next for the other, who must have used up what came before.
  void hand_over(engine& from, engine& to) {
    output said;
    from.take_output(said);
    kept_.assign(said.bytes().begin(), said.bytes().end());
    to.offer(kept_);
  }

  void ask_for_new_keys() {
    ASSERT_EQ(SSL_key_update(client_.ssl, SSL_KEY_UPDATE_REQUESTED), 1);
    ASSERT_EQ(SSL_do_handshake(client_.ssl), 1);
  }

  std::shared_ptr<context> context_;
  open_client client_;
  std::unique_ptr<engine> server_;
  std::vector<std::byte> kept_;
};

TEST_F(peers, new_keys_are_made_as_often_as_a_peer_asks_that_reads_the_answers) {
  std::array<std::byte, 100> into;
  for (int i = 0; i < 2000; ++i) {
    ask_for_new_keys();
    hand_over(client_.by, *server_);
    ASSERT_EQ(server_->read(into), 0) << i << server_->problem();
    hand_over(*server_, client_.by);
    ASSERT_EQ(client_.by.read(into), 0) << i;
  }
}

TEST_F(peers, a_peer_that_asks_for_new_keys_for_ever_and_reads_nothing_is_left) {
  std::array<std::byte, 100> into;
  std::ptrdiff_t got = 0;
  int asked = 0;
  for (; got == 0 && asked < 2000; ++asked) {
    ask_for_new_keys();
    hand_over(client_.by, *server_);
    got = server_->read(into);
  }
  EXPECT_EQ(got, -2);
  EXPECT_GT(asked, 100);
  EXPECT_THAT(server_->problem(), HasSubstr("new keys"));
}

TEST_F(peers, nor_if_it_also_says_something) {
  std::array<std::byte, 100> into;
  std::ptrdiff_t got = 1;
  for (int i = 0; got == 1 && i < 2000; ++i) {
    ask_for_new_keys();
    ASSERT_TRUE(client_.by.write(std::as_bytes(std::span("x", 1))));
    hand_over(client_.by, *server_);
    got = server_->read(into);
  }
  EXPECT_EQ(got, -2);
}

}  // namespace
}  // namespace outboard::transport::tls
