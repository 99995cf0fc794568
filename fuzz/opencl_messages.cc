// The messages of OpenCL sessions: bodies of requests that a client sends, and what a server reports about
// its platforms and about a build. A message that was decoded can be encoded and decoded again.
#include <filesystem>
#include <span>

#include "base/check.hh"
#include "marshal/opencl/bodies.hh"
#include "marshal/opencl/build_files.hh"
#include "marshal/opencl/snapshot.hh"

namespace {

using namespace outboard;
using namespace outboard::marshal::opencl;

template <class Body>
void check(std::span<const std::byte> bytes) {
  wire::reader from(bytes);
  const auto body = marshal::take_body<Body>(from);
  if (!from.ok()) return;
  std::vector<std::byte> written;
  wire::writer to(written);
  marshal::put_body(to, body);
  wire::reader again(written);
  (void)marshal::take_body<Body>(again);
  CHECK(again.finished());
}

/// Checks that no accepted path leads out of the folder in which it is placed.
void check_files(std::span<const std::byte> bytes) {
  wire::reader from(bytes);
  const auto body = marshal::take_body<build_files_body>(from);
  if (!from.ok() || !well_formed(body)) return;
  const auto stays = [](const std::string& path) {
    const std::filesystem::path below("/root" + path);
    return path == "/" || (below == below.lexically_normal() && path.find('\0') == path.npos);
  };
  CHECK(stays(body.here));
  for (const std::string& path : body.folders) CHECK(stays(path));
  for (const build_file& file : body.files) CHECK(stays(file.path));
  CHECK(name_of_set(body).size() == 41);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::span<const std::byte> bytes(reinterpret_cast<const std::byte*>(data), size);
  check<context_body>(bytes);
  check<queue_body>(bytes);
  check<division_body>(bytes);
  check<division_reply>(bytes);
  check<pipe_body>(bytes);
  check<shared_memory_body>(bytes);
  check<address_body>(bytes);
  check<shared_copy_body>(bytes);
  check<shared_fill_body>(bytes);
  check<shared_migration_body>(bytes);
  check<kernel_addresses_body>(bytes);
  check<buffer_body>(bytes);
  check<sub_buffer_body>(bytes);
  check<source_body>(bytes);
  check<image_body>(bytes);
  check<image_reply>(bytes);
  check<formats_body>(bytes);
  check<binary_body>(bytes);
  check<upload_body>(bytes);
  check<area_body>(bytes);
  check<close_area_body>(bytes);
  check<await_area_body>(bytes);
  check<busy_blocks_body>(bytes);
  check<build_body>(bytes);
  check<compile_body>(bytes);
  check<build_files_body>(bytes);
  check_files(bytes);
  check<link_body>(bytes);
  check<link_reply>(bytes);
  check<built_in_body>(bytes);
  check<build_reply>(bytes);
  check<kernel_body>(bytes);
  check<argument_body>(bytes);
  check<read_body>(bytes);
  check<write_body>(bytes);
  check<read_into_body>(bytes);
  check<write_from_body>(bytes);
  check<connections_body>(bytes);
  check<write_piece_body>(bytes);
  check<read_piece_body>(bytes);
  check<event_callback_body>(bytes);
  check<question_body>(bytes);
  auto snapshot = decode_snapshot(bytes);
  if (snapshot.ok()) CHECK(decode_snapshot(encode(*snapshot)).ok());
  return 0;
}
