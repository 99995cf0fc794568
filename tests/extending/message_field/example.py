"""The message of cuExampleCustom gets a factor, which is not 1 where b is 0."""
NEEDS = ["cuda_custom"]
TARGETS = ["outboard_shim_cuda"]


def apply(copy):
    copy.replace("src/marshal/cuda/sharing_bodies.hh", """  std::uint32_t a = 0, b = 0;
  OUTBOARD_FIELDS(a, b)
""", """  std::uint32_t a = 0, b = 0, factor = 1;
  OUTBOARD_FIELDS(a, b, factor)
""")
    copy.replace("src/frontend/cuda/chapters/peer.cc", "example_body{.a = a, .b = b}",
                 "example_body{.a = a, .b = b, .factor = b ? 1u : 3u}")
    copy.replace("src/backend/cuda/chapters/peers.cc", "body.a + body.b", "(body.a + body.b) * body.factor")


def check(shop):
    shop.cuda("""
sum = c_uint(0)
ok(cuda.cuExampleCustom(byref(sum), 14, 0))
assert sum.value == 42, sum.value
""")
    shop.house("wire_document")
