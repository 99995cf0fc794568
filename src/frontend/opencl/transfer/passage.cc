#include "frontend/opencl/transfer/passage.hh"

#include "frontend/opencl/message.hh"

namespace outboard::frontend::opencl {

passage::passage(const command& c, std::uint64_t size) {
  context_info& context = *find<context_info>(c.context());
  blocks_ = size <= context.small.block ? &context.small : &context.large;
  lock_ = std::unique_lock(blocks_->use, std::try_to_lock);
  if (!lock_ || blocks_->area || blocks_->refused) return;
  blocks_->wanted += size;
  if (blocks_->wanted < blocks_->worth_opening) return;
  blocks_->area = transfer_area::open(c.context(), blocks_->block * staging_blocks::count, blocks_->block);
  blocks_->refused = !blocks_->area;
}

cl_int passage::ask(unsigned block, bool patient) {
  message m(service::await_area);
  marshal::put_body(m.body(), marshal::opencl::await_area_body{blocks_->area->place(0).area, block, patient});
  const cl_int code = m.call();
  wire::reader reply = m.reply();
  const auto answer = marshal::take_body<marshal::opencl::busy_blocks_body>(reply);
  // All that was posted before has been carried out: of blocks that commands have used, what the server does
  // not name is free.
  if (!reply.finished()) return code == CL_SUCCESS ? m.malformed() : code;
  blocks_->busy &= answer.busy;
  failed_ = answer.failed;
  return code;
}

std::optional<unsigned> passage::take() {
  const unsigned block = blocks_->next;
  for (std::uint64_t before = 0; blocks_->busy & bit(block) && blocks_->busy != before;) {
    before = blocks_->busy;
    (void)ask(block, false);
  }
  if (blocks_->busy & bit(block)) return std::nullopt;
  blocks_->next = (block + 1) % staging_blocks::count;
  blocks_->busy |= bit(block);
  return block;
}

cl_int passage::await(unsigned block) { return ask(block, true); }

}  // namespace outboard::frontend::opencl
