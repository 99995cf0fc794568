#include "transport/transport.hh"

#include "transport/url.hh"

namespace outboard::transport {

namespace {

error unsupported(const std::string& who, const char* what) {
  return {action::fall_back, who + " cannot " + what};
}

}  // namespace

error gone(io status) {
  const char* why = "the connection broke";
  if (status == io::timed_out) why = "it did not answer in time";
  if (status == io::closed) why = "it closed the connection";
  return {action::reconnect, why, status == io::timed_out ? 0 : connection_broke};
}

io receive_whole(connection& from, std::span<std::byte> into, deadline until) {
  bool began = false;
  while (!into.empty()) {
    const io_result got = from.receive(into, until);
    if (got.status == io::interrupted) continue;
    if (got.status == io::closed && began) return io::broken;
    if (got.status != io::done) return got.status;
    into = into.subspan(got.bytes);
    began = true;
  }
  return io::done;
}

void connection::expect_send() {}

void connection::set_spin(std::chrono::microseconds) {}

bool connection::peer_gone() { return false; }

status connection::send_descriptor(int) { return unsupported(describe(), "pass descriptors"); }

result<unique_fd> connection::receive_descriptor(deadline) {
  return unsupported(describe(), "pass descriptors");
}

result<unique_fd> connection::detach() { return unsupported(describe(), "be handed to another process"); }

result<shared_stream> connection::share() const {
  return unsupported(describe(), "go on in another process");
}

status connection::go_on(shared_stream& from) {
  const bool plain = from.descriptors.size() == 1 && from.positions.empty();
  return plain ? status() : status(unsupported(describe(), "go on from another process"));
}

result<peer_identity> connection::peer() const { return unsupported(describe(), "tell who the peer is"); }

result<std::unique_ptr<connection>> transport::attach(unique_fd) {
  return unsupported(std::string(scheme()) + ":", "continue a detached connection");
}

result<std::unique_ptr<listener>> transport::adopt_listener(unique_fd) {
  return unsupported(std::string(scheme()) + ":", "adopt a listening socket");
}

transport* registry::find(std::string_view scheme) const {
  for (const auto& t : transports_)
    if (t->scheme() == scheme) return t.get();
  return nullptr;
}

std::vector<std::string_view> registry::schemes() const {
  std::vector<std::string_view> names;
  for (const auto& t : transports_) names.push_back(t->scheme());
  return names;
}

namespace {

struct target {
  transport* by;
  std::string_view address;
};

result<target> find_target(const registry& r, std::string_view text) {
  result<url> parsed = parse_url(text);
  if (!parsed) return std::move(parsed).error();
  if (transport* t = r.find(parsed->scheme)) return target{t, parsed->address};
  std::string known;
  for (std::string_view name : r.schemes()) known += (known.empty() ? "" : ", ") + std::string(name) + ":";
  return failure("no transport is called '" + printable(parsed->scheme) + ":' (in '" + printable(text) +
                 "'); known are " + (known.empty() ? "none" : known));
}

}  // namespace

result<std::unique_ptr<connection>> registry::connect(std::string_view url, deadline until) const {
  result<target> t = find_target(*this, url);
  if (!t) return std::move(t).error();
  return t->by->connect(t->address, until);
}

result<std::unique_ptr<listener>> registry::listen(std::string_view url,
                                                   const listen_options& options) const {
  result<target> t = find_target(*this, url);
  if (!t) return std::move(t).error();
  return t->by->listen(t->address, options);
}

}  // namespace outboard::transport
