#include "backend/cuda/call.hh"

#include "backend/cuda/session.hh"

namespace outboard::backend {

call::call(cuda_session& s, request_at_hand& r)
    : session(s),
      core(r.core),
      own(static_cast<cuda_lane&>(r.own)),
      header(r.header),
      body(r.body),
      reply(r.reply),
      scratch(r.scratch),
      at_hand_(r) {}

const api::driver_table& call::driver() const { return session.driver(); }
object_tables& call::objects() const { return session.objects(); }

void call::give_up_turn() {
  account_for_work();
  at_hand_.give_up_turn();
}

bool call::enter(std::uint64_t id, void* native, record made_by, std::shared_ptr<void> extra) {
  if (!own.gave_up_turn) return objects().create(id, native, std::move(made_by), std::move(extra));
  core.late().add({id, native, std::move(made_by), std::move(extra)});
  return true;
}

std::vector<std::byte> call::take_upload() {
  session.forget_upload(own.upload.size());
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
  // `body` has been walked already; the frame still holds the whole payload.
  return {header.ticket, header.opcode, header.context, at_hand_.asked.payload};
}

}  // namespace outboard::backend
