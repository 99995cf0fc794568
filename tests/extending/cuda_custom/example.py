"""cuExampleCustom has a message of its own: its handler adds up what the body brings."""
import message_rows

NEEDS = ["cuda_release"]
TARGETS = ["outboard_shim_cuda"]

MESSAGES = """
/// cuExampleCustom.
struct example_body {
  std::uint32_t a = 0, b = 0;
  OUTBOARD_FIELDS(a, b)
};
OUTBOARD_MESSAGE(example_body)

struct example_reply {
  std::uint32_t sum = 0;
  OUTBOARD_FIELDS(sum)
};
OUTBOARD_MESSAGE(example_reply)
"""
END = """
CUresult ends::cuExampleCustom(unsigned* sum, unsigned a, unsigned b) {
  if (!sum) return CUDA_ERROR_INVALID_VALUE;
  marshal::example_reply reply;
  const CUresult code =
      call<api::opcode::cuExampleCustom>(this_lane(), marshal::example_body{.a = a, .b = b}, reply);
  if (code == CUDA_SUCCESS) *sum = reply.sum;
  return code;
}
"""
HANDLER = """
outcome cuExampleCustom(call&, const marshal::example_body& body, marshal::example_reply& reply) {
  reply.sum = body.a + body.b;
  return outcome::answer(CUDA_SUCCESS);
}
"""


def apply(copy):
    copy.append("src/api/cuda/peer.def", "CUSTOM(cuExampleCustom, out sum, in a, in b; since 13010, noctx, request "
                                         "example_body, reply\n       example_reply)\n")
    copy.at_end("src/marshal/cuda/sharing_bodies.hh", MESSAGES)
    copy.at_end("src/frontend/cuda/chapters/peer.cc", END)
    copy.at_end("src/backend/cuda/chapters/peer.cc", HANDLER)
    message_rows.add_to(copy)


def check(shop):
    shop.cuda("""
sum = c_uint(0)
ok(cuda.cuExampleCustom(byref(sum), 40, 2))
assert sum.value == 42, sum.value
assert cuda.cuExampleCustom(None, 40, 2) == 1
""")
    shop.house("travel", "wire_document", "include_rules")
