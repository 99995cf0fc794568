#include "backend/cuda/call.hh"

#include "backend/cuda/cuda_session.hh"

namespace outboard::backend {

session_core& call::core() const { return session.core(); }
const api::driver_table& call::driver() const { return session.driver(); }
object_tables& call::objects() const { return session.objects(); }
void call::give_up_turn() {
  account_for_work();
  core().give_up_turn(own);
}

bool call::enter(std::uint64_t id, void* native, record made_by, std::shared_ptr<void> extra) {
  if (!own.gave_up_turn) return objects().create(id, native, std::move(made_by), std::move(extra));
  session.late().add({id, native, std::move(made_by), std::move(extra)});
  return true;
}

std::optional<std::vector<std::byte>> call::take_upload() {
  session.forget_upload(own.upload.size());
  if (std::exchange(own.upload_dropped, false)) return std::nullopt;
  return std::exchange(own.upload, {});
}

void call::works_on(CUstream stream, bool per_thread) {
  // A thread's own default stream is another one in the next thread.
  if (stream == CU_STREAM_PER_THREAD || (per_thread && !stream)) return;
  told_work = true;
  session.work().on(header.context, stream);
}

void call::account_for_work() {
  if (!std::exchange(told_work, true) && !leaves_no_work(header.opcode)) session.work().somewhere();
}

record call::as_record() const {
  // `body` has been walked already; the lane's frame still holds the whole payload.
  return {header.ticket, header.opcode, header.context, own.inbox.payload};
}

}  // namespace outboard::backend
