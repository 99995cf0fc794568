#include "frontend/cuda/code/image_recall.hh"

#include <algorithm>
#include <optional>

#include "base/log.hh"
#include "frontend/cuda/code/code.hh"
#include "marshal/cuda/image_bodies.hh"

namespace outboard::frontend::cuda {
namespace {

using clock = image_recalls::clock;

/// What a line's pace is measured by: 10 ms of 100 Mb/s, 1 ms of 1 Gb/s.
constexpr std::size_t probe = 128u << 10;

/// By which we know how fast this processor hashes, in parts: one may be interrupted.
constexpr std::size_t hash_sample = 256u << 10, hash_part = 64u << 10;
static_assert(hash_sample <= marshal::least_named_image);

/// False, too, where the connection is lost: what follows finds that out.
bool ask(lane& own, const marshal::recall_body& body) {
  own.request.clear();
  wire::writer w(own.request);
  marshal::put_body(w, body);
  const outgoing question{
      static_cast<std::uint32_t>(marshal::service::image_recall), own.id, 0, own.request, {}};
  if (process::instance().server()->call(question, own.reply) != CUDA_SUCCESS) return false;
  wire::reader from(own.reply);
  const auto reply = marshal::take_body<marshal::recall_reply>(from);
  if (!from.finished()) (void)malformed_reply(static_cast<api::opcode>(marshal::service::image_recall));
  return from.finished() && reply.found;
}

std::int64_t microseconds(clock::duration d) {
  return std::chrono::duration_cast<std::chrono::microseconds>(d).count();
}

/// The bytes of the image that were sent on the way.
std::size_t measure(lane& own, image_recalls& recalls, std::span<const std::byte> image,
                    const std::unique_lock<std::mutex>& turn) {
  const std::lock_guard lock(recalls.measuring);
  if (recalls.knows_line(clock::now())) return 0;
  const auto ask_nothing = [&] {
    const auto began = clock::now();
    (void)ask(own, {});
    return clock::now() - began;
  };
  const auto empty = ask_nothing();
  const auto began = clock::now();
  if (upload(own, image.first(probe), turn) != CUDA_SUCCESS) return 0;
  (void)ask(own, {});
  const auto behind = clock::now() - began;
  recalls.measured(empty, probe, behind, clock::now());
  // It seems fast. Unless the first answer was late: on a fast line it costs nothing to look again.
  if (!recalls.pays(image.size()))
    recalls.measured(std::min(empty, ask_nothing()), probe, behind, clock::now());
  log::debug("module cache: a round trip takes ", microseconds(empty), " us, with ", probe >> 10, " KiB ",
             microseconds(behind), " us: asking for an image of ", image.size(),
             recalls.pays(image.size()) ? " bytes may pay" : " bytes does not pay");
  return probe;
}

/// Nothing: this processor takes too long for it to be worth it.
std::optional<marshal::image_key> hash(image_recalls& recalls, std::span<const std::byte> image) {
  marshal::image_hasher hasher;
  const auto add = [&](std::span<const std::byte> part) {
    const auto began = clock::now();
    hasher.update(part);
    recalls.hashed(part.size(), clock::now() - began);
  };
  for (std::size_t at = 0; at < hash_sample; at += hash_part) add(image.subspan(at, hash_part));
  if (!recalls.pays(image.size())) return std::nullopt;
  if (image.size() > hash_sample) add(image.subspan(hash_sample));
  return hasher.finish();
}

}  // namespace

recalled_image recall_image(lane& own, std::span<const std::byte> image,
                            const std::unique_lock<std::mutex>& turn) {
  image_recalls* const recalls = process::instance().recalls();
  recalled_image done;
  if (!recalls || image.size() < marshal::least_named_image) return done;
  if (!recalls->knows_line(clock::now())) done.uploaded = measure(own, *recalls, image, turn);
  if (!recalls->pays(image.size())) return done;
  const auto key = hash(*recalls, image);
  if (!key) return done;
  const auto began = clock::now();
  if (!ask(own, {marshal::name_of(*key), marshal::proof_of(*key, recalls->challenge()), image.size()}))
    return done;
  recalls->found(image.size(), clock::now() - began);
  done.uploaded = image.size();
  return done;
}

}  // namespace outboard::frontend::cuda
