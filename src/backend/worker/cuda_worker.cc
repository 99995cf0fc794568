#include "backend/worker/cuda_worker.hh"

#include <atomic>
#include <chrono>

#include "backend/cuda/replace/preparation.hh"
#include "backend/cuda/session.hh"
#include "backend/worker/device_output.hh"
#include "backend/worker/warm_device.hh"
#include "base/log.hh"
#include "marshal/cuda/snapshot.hh"
#include "wire/features.hh"

namespace outboard::backend {
namespace {

std::string describe_code(const api::driver_table& driver, const char* call, CUresult code) {
  const char* name = nullptr;
  if (!driver.cuGetErrorName || driver.cuGetErrorName(code, &name) != CUDA_SUCCESS || !name)
    name = "unknown error";
  return std::string(call) + ": " + name + " (" + std::to_string(code) + ")";
}

/// A program that goes on after its failures does not fill its user's screen with them.
constexpr unsigned most_failures_told = 16;

result<std::unique_ptr<device::device>> open_device(const cuda_worker_terms& terms, device_output* output) {
  // What goes wrong in a program is its user's matter: the server's log has it for information.
  const auto told = std::make_shared<std::atomic<unsigned>>(0);
  auto device = terms.open_device([output, told](std::string_view line) {
    log::info(line);
    const unsigned before = told->fetch_add(1, std::memory_order_relaxed);
    if (output && before <= most_failures_told)
      output->tell(before < most_failures_told ? line : "more failures of this program are left out here");
  });
  if (!device.ok()) return device;
  const api::driver_table& driver = (*device)->cuda();
  if (!driver.cuInit) return failure("the " + std::string((*device)->kind()) + " device has no cuInit");
  if (const CUresult code = driver.cuInit(0); code != CUDA_SUCCESS) {
    return outboard::error{action::fail, (*device)->describe() + ": " + describe_code(driver, "cuInit", code),
                           code == CUDA_ERROR_NO_DEVICE ? no_device : 0};
  }
  return device;
}

std::string why_no_profiles(device::device& device) {
  device::work_recorder* const recorder = device.recorder();
  if (!recorder) return "this build of the server cannot record it";
  const status could = recorder->look();
  return could.ok() ? std::string() : could.error().message;
}

/// What the warm context of a device occupies: the difference of the free memory around its creation.
class memory_meter {
 public:
  memory_meter(const cuda_worker_terms& terms, const device::device& device, int ordinal) : terms_(terms) {
    char id[32] = "";
    const api::driver_table& driver = device.cuda();
    if (terms.free_memory && driver.cuDeviceGetPCIBusId &&
        driver.cuDeviceGetPCIBusId(id, sizeof id, ordinal) == CUDA_SUCCESS) {
      pci_bus_id_ = id;
      before_ = terms.free_memory(pci_bus_id_);
    }
  }
  std::uint64_t taken() const {
    if (!before_) return 0;
    const auto after = terms_.free_memory(pci_bus_id_);
    return after && *after < *before_ ? *before_ - *after : 0;
  }

 private:
  const cuda_worker_terms& terms_;
  std::string pci_bus_id_;
  std::optional<std::uint64_t> before_;
};

class cuda_worker final : public worker_api {
 public:
  cuda_worker(const cuda_worker_terms& terms, std::unique_ptr<device::device> device)
      : terms_(terms), device_(std::move(device)) {}

  result<facts_message> facts() override {
    const auto snapshot = marshal::take_snapshot(device_->cuda(), false);
    if (!snapshot.ok()) return snapshot.error();
    return facts_message{std::string(device_->kind()), device_->describe(), encode(*snapshot),
                         why_no_profiles(*device_)};
  }

  /// A context of the driver's own first device: what a program uses that chooses none, and what the snapshot
  /// needs, too.
  ready_message get_ready(bool measured) override {
    constexpr int ordinal = 0;
    if (!measured) return make_context(ordinal), ready_message{};
    const auto began = std::chrono::steady_clock::now();
    const memory_meter meter(terms_, *device_, ordinal);
    make_context(ordinal);
    ready_message ready;
    ready.context = warm_ != nullptr;
    ready.context_bytes = meter.taken();
    ready.microseconds = static_cast<std::uint64_t>(
        std::chrono::duration_cast<std::chrono::microseconds>(std::chrono::steady_clock::now() - began)
            .count());
    return ready;
  }

  status load_ahead(std::span<const std::byte> preparation) override {
    return ahead_.emplace(in_use().cuda()).load(preparation);
  }

  session_maker speak(const wire::hello& hello, const image_terms& images) override {
    if ((hello.features & wire::feature_image_recall) != 0) open_images();
    return speak_cuda(
        {&in_use(), images_ ? &*images_ : nullptr, images, terms_.core_dumps, ahead_ ? &*ahead_ : nullptr});
  }

 private:
  device::device& in_use() { return warm_ ? *warm_ : *device_; }

  void make_context(int ordinal) {
    auto warm = make_warm_device(*device_, ordinal);
    if (!warm.ok()) return log::debug("no context in waiting: ", warm.error().message);
    warm_ = std::move(*warm);
  }

  /// Where the images of this session's modules are kept.
  void open_images() {
    auto opened = image_cache::open(terms_.cache.directory, terms_.cache.size);
    if (!opened.ok()) return log::warn("no module cache: ", opened.error().message);
    images_ = std::move(*opened);
  }

  const cuda_worker_terms terms_;
  const std::unique_ptr<device::device> device_;
  std::unique_ptr<device::device> warm_;  // null: no context may wait
  std::optional<image_cache> images_;
  std::optional<loaded_ahead> ahead_;  // uses the devices
};

}  // namespace

api_opener open_cuda(cuda_worker_terms terms) {
  return [terms = std::move(terms)](device_output* output) -> result<std::unique_ptr<worker_api>> {
    auto device = open_device(terms, output);
    if (!device.ok()) return std::move(device).error();
    return std::unique_ptr<worker_api>(std::make_unique<cuda_worker>(terms, std::move(*device)));
  };
}

}  // namespace outboard::backend
