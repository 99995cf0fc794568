// What the program has made with the calls of virtual memory management: address ranges that the driver
// chose, physical memory, what is mapped where and who may access it. Kept for the ledger and the records.
// With the session's turn.
#pragma once

#include <cstdint>
#include <map>
#include <utility>
#include <vector>

#include "api/cuda/driver_table.hh"
#include "backend/worker/device_tally.hh"
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
  /// Memory that is mapped lives, and counts, until it is mapped nowhere.
  void released(std::uint64_t handle);

  CUresult map(const marshal::mapping_body& wanted, CUmemGenericAllocationHandle memory,
               std::uint64_t ticket);
  CUresult unmap(std::uint64_t address, std::uint64_t size);
  CUresult set_access(const marshal::access_body& wanted, const std::vector<CUmemAccessDesc>& access);

  std::uint64_t bytes() const { return bytes_; }
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
  };

  const api::driver_table& driver_;
  device_tally& held_;
  std::map<std::uint64_t, range> ranges_;
  std::map<std::uint64_t, placed> placed_;
  struct physical {
    std::uint64_t size = 0;
    std::int32_t device = -1;
    std::uint32_t mappings = 0;
    bool released = false;
  };
  void forget_if_gone(std::map<std::uint64_t, physical>::iterator memory);

  std::map<std::uint64_t, physical> memory_;  // by handle
  std::uint64_t bytes_ = 0;
};

}  // namespace outboard::backend
