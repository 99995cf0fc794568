#include "backend/daemon/identities.hh"

#include "backend/daemon/device_shape.hh"

namespace outboard::backend {
namespace {

constexpr rights of(right r) { return static_cast<unsigned>(r); }

}  // namespace

result<identity_book> identities::read(const config& c, std::span<const std::string> uuids) {
  return identity_book::make(c.identities,
                             [&](const std::vector<std::string>& wanted) -> result<std::vector<std::string>> {
                               const auto places = choose_devices(wanted, uuids, "devices");
                               if (!places.ok()) return places.error();
                               std::vector<std::string> chosen;
                               for (const std::size_t place : *places) chosen.push_back(uuids[place]);
                               return chosen;
                             });
}

result<share_ptr> identities::find(const proven_identity& who) const {
  const rights usual = of(right::run) | of(right::list_own) | of(right::checkpoint_own);
  auto has = book_.find(who, several() ? usual : usual | of(right::list_all));
  if (!has.ok()) return outboard::error{action::fail, has.error().message, no_right};
  return has;
}

result<share_ptr> identities::allowed(const proven_identity& who, right wanted) const {
  auto has = find(who);
  if (has.ok()) OUTBOARD_TRY(check_right(who.person, **has, wanted));
  return has;
}

}  // namespace outboard::backend
