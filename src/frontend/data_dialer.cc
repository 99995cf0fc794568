#include "frontend/data_dialer.hh"

#include <algorithm>
#include <thread>

#include "base/cores.hh"
#include "base/log.hh"
#include "base/version.hh"
#include "frontend/copying/copy_pieces.hh"
#include "frontend/reconnector.hh"
#include "wire/data_connection.hh"
#include "wire/features.hh"

namespace outboard::frontend {
namespace {

constexpr std::chrono::seconds connect_patience{10};
/// Of one connection whose link breaks while it is made.
constexpr int most_tries = 3;
constexpr std::chrono::milliseconds try_again_after{50};

}  // namespace

data_dialer::data_dialer(const transport::registry& transports, const dialed& with, const settings& s)
    : transports_(&transports),
      url_(with.url),
      token_(s.token),
      encrypts_(s.encrypts),
      session_(with.welcome.session),
      packs_((with.welcome.features & wire::feature_packed_pieces) != 0),
      reconnector_(with.reconnects) {
  // A thread here and one there for each (H200, 16 cores: 4, 6, 8, 12 carry 14, 21, 25, 24 GB/s).
  const auto most = static_cast<std::uint32_t>(std::max(4, usable_cores() / 2));
  const bool offered = (with.welcome.features & wire::feature_data_connections) != 0;
  count_ = offered ? std::min(s.data_connections, most) : 0;
}

/// A link that breaks meanwhile comes back, and then the next try succeeds.
result<dialed> data_dialer::dial_one() const {
  wire::hello hello;
  hello.product = product;
  hello.wanted = wire::purpose_data;
  hello.admin_question = wire::encode_data_question(session_);
  for (int tries = 1;; ++tries) {
    auto made = frontend::dial(*transports_, url_, hello, token_, transport::clock::now() + connect_patience,
                               welcome_patience, encrypts_);
    if (made.ok() || made.error().reason != 0 || !reconnector_ || tries == most_tries) return made;
    std::this_thread::sleep_for(try_again_after);
    if (!reconnector_->await_link()) return made;
  }
}

bool data_dialer::dial(data_connections::links& links, std::vector<marshal::share_token>& tokens) const {
  for (std::uint32_t i = 0; i < count_; ++i) {
    auto made = dial_one();
    if (!made) return log::debug("no data connection: ", made.error().message), false;
    const auto token = wire::decode_data_answer(made->welcome.content);
    if (!token) return log::debug("no data connection: ", token.error().message), false;
    links.push_back(std::make_unique<data_link>());
    links.back()->connection =
        reconnector_ ? reconnector_->adopt(*token, std::move(made->connection)) : std::move(made->connection);
    if (packs_) links.back()->packer.emplace();
    tokens.push_back(*token);
  }
  return true;
}

bool data_dialer::open(data_connections& data, bool to_device, const ask& server) const {
  marshal::data_open_body body;
  data_connections::links links;
  if (!dial(links, body.tokens)) return false;
  if (to_device) body.inward = static_cast<std::uint32_t>(links.size());
  const auto reply = server(body);
  if (!reply || reply->outward.size() != links.size() - body.inward) return false;
  for (std::size_t i = 0; i < reply->outward.size(); ++i) links[i]->number = reply->outward[i];
  data.adopt(std::move(links));
  return true;
}

use_of_connections::use_of_connections(data_connections& data, std::uint64_t size,
                                       const std::function<bool(data_connections&)>& open) {
  if (!data.use.try_lock()) return;
  if (!data.open() && !data.refused) {
    data.wanted += size;
    if (data.wanted >= worth_preparing) {
      data.wanted = 0;
      data.refused = !open(data);
    }
  }
  if (data.open()) {
    data_ = &data;
  } else {
    data.use.unlock();
  }
}

}  // namespace outboard::frontend
