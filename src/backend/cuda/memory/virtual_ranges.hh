// What the program has made with the calls of virtual memory management: address ranges that the driver
// chose, physical memory, what is mapped where and who may access it. Kept for the ledger and the records.
// Memory of the host is ours, pages of a file that the client maps too; the driver knows it as page-locked.
// With the session's turn.
#pragma once

#include <cstdint>
#include <map>
#include <mutex>
#include <optional>
#include <utility>
#include <vector>

#include "api/cuda/driver_table.hh"
#include "backend/cuda/memory/host_piece.hh"
#include "backend/worker/device_tally.hh"
#include "base/fd.hh"
#include "marshal/cuda/bodies.hh"

namespace outboard::backend {

class virtual_ranges {
 public:
  virtual_ranges(const api::driver_table& driver, device_tally& held) : driver_(driver), held_(held) {}

  /// Where the driver likes; with an address: there or not at all (CUDA_ERROR_MAP_FAILED).
  CUresult reserve(const marshal::range_body& wanted, std::uint64_t ticket, std::uint64_t& address);
  CUresult free(std::uint64_t address, std::uint64_t size);

  /// `device`: whose memory it is; -1: no device's.
  void created(std::uint64_t handle, std::uint64_t size, std::int32_t device);
  /// Memory of the host, of the session's own or of another one's.
  void created_on_host(std::uint64_t handle, std::uint64_t size, unique_fd file, std::int32_t node);
  /// Of memory of the host that is not released; -1: it is none.
  int host_file(std::uint64_t handle) const;
  std::int32_t host_node(std::uint64_t handle) const { return memory_.at(handle).node; }
  /// Memory that is mapped lives, and counts, until it is mapped nowhere.
  void released(std::uint64_t handle);

  CUresult map(const marshal::mapping_body& wanted, CUmemGenericAllocationHandle memory,
               std::uint64_t ticket);
  /// Of the host's. The caller has looked that nothing but reserved addresses lies there.
  CUresult map_host(const marshal::mapping_body& wanted, std::uint64_t ticket);
  /// In a range that reserve() gave, and nothing is mapped there.
  bool vacant(std::uint64_t address, std::uint64_t size) const;
  bool maps_in(std::uint64_t address, std::uint64_t size) const;  ///< anything, or its end is not over
  bool knows(std::uint64_t handle) const { return memory_.contains(handle); }  ///< mapped still, perhaps
  /// Memory of devices goes at once; what the driver refuses to unmap stays, and does not keep the rest. Of
  /// the host's the addresses stay taken until end_pieces(), which takes the driver as long as its devices
  /// are at work.
  CUresult unmap(std::uint64_t address, std::uint64_t size, std::vector<host_piece>& going);
  /// Without the turn.
  void end_pieces(std::vector<host_piece>& going);
  /// The device's primary context has been reset.
  void context_reset(CUdevice device);
  CUresult set_access(const marshal::access_body& wanted, const std::vector<CUmemAccessDesc>& access);

  std::uint64_t bytes() const { return bytes_; }
  std::uint64_t host_bytes() const { return held_.of_host(); }
  /// Requests that make all of it again; creations are the objects' records. Tickets order them.
  std::vector<marshal::record_body> records() const;

 private:
  struct range {
    std::uint64_t size = 0, ticket = 0;
  };
  struct placed {
    marshal::mapping_body made;
    std::uint64_t ticket = 0;
    std::map<std::pair<std::int32_t, std::int32_t>, std::int32_t> access;  // location type, location: flags
    std::optional<host_piece> host;
  };
  using placements = std::map<std::uint64_t, placed>;

  const api::driver_table& driver_;
  device_tally& held_;
  std::map<std::uint64_t, range> ranges_;
  placements placed_;
  struct physical {
    std::uint64_t size = 0;
    std::int32_t device = -1;
    std::uint32_t mappings = 0;
    bool released = false;
    unique_fd file;         // of the host's
    std::int32_t node = 0;  // of the host's
  };
  bool has_host(std::uint64_t address, std::uint64_t size) const;
  CUresult unmap_each(std::uint64_t address, std::uint64_t size, std::vector<host_piece>& going);
  static void note_access(placed& where, const std::vector<CUmemAccessDesc>& access);
  CUresult open_each(const marshal::access_body& wanted, const std::vector<CUmemAccessDesc>& access);
  void note_placed(const marshal::mapping_body& made, placed&& where);
  /// Out of the books; gives the next one.
  placements::iterator take_out(placements::iterator gone);
  void forget_if_gone(std::map<std::uint64_t, physical>::iterator memory);

  std::map<std::uint64_t, physical> memory_;  // by handle
  std::uint64_t bytes_ = 0;
  mutable std::mutex going_mutex_;                // guards what follows
  std::map<std::uint64_t, std::uint64_t> going_;  // address, size: of the host's, and not over
};

}  // namespace outboard::backend
