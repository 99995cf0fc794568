"""cuExampleCustom has a message of its own: its handler adds up what the body brings."""
import tables

TARGETS = ["outboard_shim_cuda"]

MESSAGES = """
/// cuExampleCustom.
struct example_body {
  std::uint32_t a = 0, b = 0;
  OUTBOARD_FIELDS(a, b)
};

/// Its reply.
struct example_reply {
  std::uint32_t sum = 0;
  OUTBOARD_FIELDS(sum)
};
"""
END = """
CUresult ends::cuExampleCustom(unsigned* sum, unsigned a, unsigned b) {
  lane& own = this_lane();
  if (const CUresult code = process::instance().gate(own); code != CUDA_SUCCESS) return code;
  if (!sum) return CUDA_ERROR_INVALID_VALUE;
  request_of<api::opcode::cuExampleCustom> r(own, marshal::example_body{.a = a, .b = b});
  marshal::example_reply reply;
  if (const CUresult code = r.call(reply); code != CUDA_SUCCESS) return code;
  return *sum = reply.sum, CUDA_SUCCESS;
}
"""
HANDLER = """
outcome cuExampleCustom(call& c, const marshal::example_body& body) {
  if (c.refused != CUDA_SUCCESS) return outcome::answer(c.refused);
  marshal::put_body(c.reply, marshal::example_reply{.sum = body.a + body.b});
  return outcome::answer(CUDA_SUCCESS);
}
"""


def apply(copy):
    tables.append_cuda(copy, "peer", "CUSTOM(cuExampleCustom, example_body, example_reply, out sum, in a, in b)")
    copy.at_end("src/marshal/cuda/sharing_bodies.hh", MESSAGES)
    copy.at_end("src/frontend/cuda/chapters/peer.cc", END)
    copy.at_end("src/backend/cuda/chapters/peers.cc", HANDLER)


def check(shop):
    shop.cuda("""
sum = c_uint(0)
ok(cuda.cuExampleCustom(byref(sum), 40, 2))
assert sum.value == 42, sum.value
assert cuda.cuExampleCustom(None, 40, 2) == 1
ok(cuda.cuCtxSetCurrent(None))
assert cuda.cuExampleCustom(byref(sum), 40, 2) == 201
""")
    shop.house("wire_document", "include_rules")
