// Memory of the host that the program makes by cuMemCreate: a file that the server seals and gives to this
// process, where the transport can pass descriptors; each side maps its pages at the addresses where the
// program maps the memory. Any thread.
#pragma once

#include "frontend/cuda/requests.hh"
#include "frontend/memory/virtual_book.hh"

namespace outboard::frontend::cuda {

/// Whether client and server can have the same pages. Over a network they cannot.
bool shares_host_memory();

/// The file that came with an answer, if one did. One that could lose pages ends the session: it would end
/// this process later.
CUresult take_pages(api::opcode code, unique_fd&& file, unique_fd& pages);

/// Calls (in no context) and takes the file that comes with the answer.
template <api::opcode Op, class Body>
CUresult call_for_pages(lane& own, const Body& body, std::vector<std::byte>& reply, unique_fd& pages) {
  unique_fd file;
  const CUresult answer = call_apart<Op>(own, 0, body, reply, &file);
  return answer == CUDA_SUCCESS ? take_pages(Op, std::move(file), pages) : answer;
}

/// The server's pages in the place of the reservation; out of the program's reach until it is given access.
bool map_pages(const placement& made, int pages);
/// The reservation again.
void unmap_pages(const placement& gone);

/// Devices by their numbers; all of the host counts as one, because a driver lets every node in when one is
/// given access.
std::pair<std::int32_t, std::int32_t> location_of(const CUmemLocation& where);

/// Anything of the host's: a node, the current one, or all.
bool of_host(CUmemLocationType type);

/// Notes what a location may do with the memory, and lets the program in or out if the location is the host.
CUresult open_to(const placement& memory, const CUmemAccessDesc& desc);

}  // namespace outboard::frontend::cuda
