// A CUDA session leaves its worker: waits for its device, and tells all that it is.
#include <fcntl.h>

#include <algorithm>

#include "backend/cuda/driver_call.hh"
#include "backend/cuda/replace/parts.hh"
#include "backend/cuda/replace/preparation.hh"
#include "backend/cuda/sharing.hh"

namespace outboard::backend {
namespace {

/// The end of all that a context's legacy stream and those behind it have to do; other streams are asked.
class device_settling final : public session_api::settling {
 public:
  device_settling(cuda_session& session, session_core& core) : session_(session), own_(session, core) {}
  ~device_settling() override {
    for (const mark& m : marks_) (void)call_driver(session_.driver().cuEventDestroy_v2, m.event);
  }

  std::string begin() {
    call& c = own_.it;
    if (std::string why = what_stays(c); !why.empty()) return why;
    for (const std::uint64_t context : c.objects().ids(api::handle_kind::context)) {
      if (const CUresult code = add_mark(context); code != CUDA_SUCCESS)
        return failed_for("the end of its work", code);
    }
    return {};
  }

  bool is_over() override {
    session_.outgoing_copies().flush();
    return marks_are_over() && streams_are_over() && session_.host().is_quiet() &&
           session_.outgoing_copies().empty() && tell_output();
  }

 private:
  struct mark {
    std::uint64_t context = 0;
    CUevent event = nullptr;
  };

  /// What kernels have printed comes out when one waits for them; nobody has to wait any more.
  bool tell_output() {
    for (const mark& m : marks_) {
      if (session_.unseen().possible() && session_.enter_context(own_.own, m.context) == CUDA_SUCCESS)
        (void)call_driver(session_.driver().cuCtxSynchronize);
    }
    own_.it.core.send_output();
    return true;
  }

  CUresult add_mark(std::uint64_t context) {
    const api::driver_table& d = session_.driver();
    CUevent event = nullptr;
    CUresult code = session_.enter_context(own_.own, context);
    if (code == CUDA_SUCCESS) code = call_driver(d.cuEventCreate, &event, CU_EVENT_DISABLE_TIMING);
    if (code != CUDA_SUCCESS) return code;
    marks_.push_back({context, event});
    return call_driver(d.cuEventRecord, event, nullptr);
  }
  bool marks_are_over() {
    return std::ranges::all_of(marks_, [this](const mark& m) {
      return session_.enter_context(own_.own, m.context) == CUDA_SUCCESS &&
             call_driver(session_.driver().cuEventQuery, m.event) == CUDA_SUCCESS;
    });
  }
  bool streams_are_over() {
    return std::ranges::all_of(session_.objects().ids(api::handle_kind::stream), [this](std::uint64_t id) {
      const server_object& stream = *session_.objects().at(id);
      return session_.enter_context(own_.own, stream.records.front().context) == CUDA_SUCCESS &&
             call_driver(session_.driver().cuStreamQuery, static_cast<CUstream>(stream.native)) ==
                 CUDA_SUCCESS;
    });
  }

  cuda_session& session_;
  call_of_our_own own_;
  std::vector<mark> marks_;
};

status add_device_memory(call& c, session_image& into, cuda_part& all) {
  for (const mapping& m : c.session.memory().all()) {
    unique_fd piece;
    const CUresult code = export_memory(c.driver(), m.memory, m.piece, piece);
    if (code != CUDA_SUCCESS)
      return failure(failed_for("memory of the device cannot leave its process", code));
    all.device.push_back({m.address, m.size, m.context, m.ticket, m.device, into.add(std::move(piece))});
  }
  return {};
}

status add_host_memory(call& c, session_image& into, cuda_part& all) {
  for (const mirrored& m : c.session.mirrors().shared()) {
    unique_fd pages(::fcntl(m.file->get(), F_DUPFD_CLOEXEC, 0));
    if (!pages) return failure("no descriptor is left for page-locked memory");
    all.host.push_back({m.address, m.size, m.context, into.add(std::move(pages))});
  }
  return {};
}

}  // namespace

std::string failed_for(const std::string& what, CUresult code) {
  return what + " (" + std::to_string(static_cast<int>(code)) + ")";
}

result<std::unique_ptr<session_api::preparation>> cuda_session::prepare() {
  call_of_our_own ours(*this, core_);
  if (std::string why = what_stays(ours.it); !why.empty()) return failure(std::move(why));
  auto made = std::make_unique<code_preparation>(ours.it);
  loaded_there_ = made->ids();
  return std::unique_ptr<session_api::preparation>(std::move(made));
}

result<std::unique_ptr<session_api::settling>> cuda_session::settle() {
  auto begun = std::make_unique<device_settling>(*this, core_);
  if (std::string why = begun->begin(); !why.empty()) return failure(std::move(why));
  return std::unique_ptr<session_api::settling>(std::move(begun));
}

status cuda_session::save(session_image& into) {
  call_of_our_own ours(*this, core_);
  call& c = ours.it;
  cuda_part all;
  all.own_addresses = facts_.own_addresses;
  if (!object_records(c, all.contexts, all.rest)) return failure("a graph of it cannot be told");
  auto variables = variables_of(c);
  if (!variables.ok()) return std::move(variables).error();
  all.variables = std::move(*variables);
  all.uses = uses_.all(objects_);
  OUTBOARD_TRY(add_device_memory(c, into, all));
  OUTBOARD_TRY(add_host_memory(c, into, all));
  objects_.each_tombstone([&](std::uint64_t id, const server_object& o) {
    all.tombstones.push_back({id, o.code});
  });
  bool uploading = false;
  core_.each_lane([&](lane& each) {
    const auto& own = static_cast<const cuda_lane&>(each);
    uploading = uploading || !own.upload.empty();
    if (own.deferred != 0) all.lanes.push_back({own.id, own.deferred});
  });
  if (uploading) return failure("it is sending an image");
  wire::writer w(into.bytes);
  marshal::put_body(w, all);
  return {};
}

}  // namespace outboard::backend
