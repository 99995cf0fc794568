// What a session of OpenCL holds of each device's memory, and how much it may. An object counts on every
// device of its context, from its creation until the client and the platform have both let go of it: commands
// that are under way keep what they use. Devices are added with the session's turn, before anything is
// counted; all else: any thread.
#pragma once

#include <atomic>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "api/opencl/headers.hh"
#include "backend/session/resume_messages.hh"
#include "backend/worker/device_tally.hh"

namespace outboard::backend::opencl {

class memory_ledger : public std::enable_shared_from_this<memory_ledger> {
 public:
  /// `most` bytes of each device; 0: as much as there is. `page` may be null and outlives the process's last
  /// object.
  /// `account`: what the session's identity holds; null: that has no limit.
  memory_ledger(std::uint64_t most, activity_page* page, const account_share* account = nullptr)
      : most_(most), page_(page), account_(account ? std::optional(*account) : std::nullopt) {}

  /// The host's next device, by its board's number (0: none), with all of its memory. Parts of a device count
  /// as the whole.
  void add(cl_device_id device, std::uint64_t board, std::uint64_t memory);
  void add_part(cl_device_id part, cl_device_id whole);
  /// All of the host's are known.
  void open() {
    if (account_) account_->set_devices(boards_);
    tally_.open(boards_, page_, account_ ? &*account_ : nullptr);
  }

  std::uint64_t most() const { return most_; }
  std::uint64_t bytes(cl_device_id device) const;
  /// Of objects that the client has let go of and the platform has not.
  std::uint64_t dying() const { return dying_.load(); }

  using places = std::vector<std::int32_t>;
  /// Each device once.
  places places_of(std::span<const cl_device_id> devices) const;

  /// What one object takes, until nobody has it any more.
  class hold {
   public:
    hold(std::shared_ptr<memory_ledger> ledger, places on, std::uint64_t bytes)
        : ledger_(std::move(ledger)), on_(std::move(on)), bytes_(bytes) {}
    ~hold();
    hold(const hold&) = delete;
    hold& operator=(const hold&) = delete;
    /// The client has let go of the object.
    void let_go();

   private:
    const std::shared_ptr<memory_ledger> ledger_;
    const places on_;
    const std::uint64_t bytes_;
    std::atomic<bool> dying_{false};
  };
  bool fits(const places& on, std::uint64_t bytes) const;
  /// nullptr: more than the session may hold, or its identity. With the turn, so that nobody counts in
  /// between.
  std::shared_ptr<hold> take(places on, std::uint64_t bytes);
  /// What has to be freed for so much more; nothing: no other session's memory would help, because the
  /// session's own limit or a device does not allow it.
  std::optional<room_message> room_for(const places& on, std::uint64_t bytes) const;

 private:
  const std::uint64_t most_;
  activity_page* const page_;
  std::optional<account_share> account_;
  device_tally tally_;
  std::vector<std::uint64_t> boards_, memory_;
  std::map<cl_device_id, std::int32_t> places_;
  std::atomic<std::uint64_t> dying_{0};
};

/// Kept with the client's handle: with that the client's share of the hold ends.
std::shared_ptr<void> end_with_handle(std::shared_ptr<memory_ledger::hold> held);

}  // namespace outboard::backend::opencl
