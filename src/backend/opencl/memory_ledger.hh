// The account of what an OpenCL session holds of each device's memory, and of how much it may hold. An object
// counts on every device of its context, from its creation until both the client and the platform have
// released it: commands under way keep what they use. Devices are added with the session's turn, before
// anything is counted. Everything else may be called by any thread.
#pragma once

#include <atomic>
#include <cstdint>
#include <map>
#include <memory>
#include <span>
#include <vector>

#include "api/opencl/headers.hh"
#include "backend/worker/device_tally.hh"

namespace outboard::backend::opencl {

class memory_ledger : public std::enable_shared_from_this<memory_ledger> {
 public:
  /// The session may hold `most` bytes of each device; 0: all that there is. `page` and the slot's may be
  /// null, and outlive the process's last object.
  memory_ledger(std::uint64_t most, activity_page* page, memory_slot slot = {})
      : most_(most), page_(page), slot_(slot) {}

  /// Adds the host's next device, with its board's number (0: none). Parts of a device count as the whole
  /// device.
  void add(cl_device_id device, std::uint64_t board);
  void add_part(cl_device_id part, cl_device_id whole);
  /// All devices of the host are added.
  void open() { tally_.open(boards_, page_, slot_); }

  std::uint64_t most() const { return most_; }
  std::uint64_t bytes(cl_device_id device) const;
  /// Counts memory of this machine that the session holds whether or not it may.
  void add_of_machine(std::uint64_t bytes) { tally_.add(this_machine, bytes); }
  void drop_of_machine(std::uint64_t bytes) { tally_.take(this_machine, bytes); }
  /// Returns the bytes of objects that the client has released and the platform still holds.
  std::uint64_t dying() const { return dying_.load(); }

  using places = std::vector<std::int32_t>;
  /// Returns the places of the devices, each device once.
  places places_of(std::span<const cl_device_id> devices) const;

  /// The share of one object. It ends when nobody holds the object any more.
  class hold {
   public:
    hold(std::shared_ptr<memory_ledger> ledger, places on, std::uint64_t bytes)
        : ledger_(std::move(ledger)), on_(std::move(on)), bytes_(bytes) {}
    ~hold();
    hold(const hold&) = delete;
    hold& operator=(const hold&) = delete;
    /// The client has released the object.
    void let_go();

   private:
    const std::shared_ptr<memory_ledger> ledger_;
    const places on_;
    const std::uint64_t bytes_;
    std::atomic<bool> dying_{false};
  };
  bool fits(const places& on, std::uint64_t bytes) const;
  /// Counts an object. nullptr: the session would hold more than it may, or its identity. Called with the
  /// turn, so that nothing else of the session is counted in between.
  std::shared_ptr<hold> take(places on, std::uint64_t bytes);
  /// The same of this machine's memory, which counts until the last copy of the result goes. Any thread.
  std::shared_ptr<void> take_of_machine(std::uint64_t bytes);

 private:
  const std::uint64_t most_;
  activity_page* const page_;
  const memory_slot slot_;
  device_tally tally_;
  std::vector<std::uint64_t> boards_;
  std::map<cl_device_id, std::int32_t> places_;
  std::atomic<std::uint64_t> dying_{0};
};

/// Made to be kept with the client's handle: when the handle goes, the client has released the object.
std::shared_ptr<void> end_with_handle(std::shared_ptr<memory_ledger::hold> held);

}  // namespace outboard::backend::opencl
