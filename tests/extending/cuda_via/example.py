"""cuExampleVia travels in the requests of cuExampleCustom."""
NEEDS = ["cuda_custom"]
TARGETS = ["outboard_shim_cuda"]


def apply(copy):
    copy.append("src/api/cuda/peer.def", "CUSTOM(cuExampleVia, out twice, in a; since 13010, noctx, via cuExampleCustom)\n")
    copy.at_end("src/frontend/cuda/chapters/peer.cc", """
CUresult ends::cuExampleVia(unsigned* twice, unsigned a) { return cuExampleCustom(twice, a, a); }
""")


def check(shop):
    shop.cuda("""
twice = c_uint(0)
ok(cuda.cuExampleVia(byref(twice), 21))
assert twice.value == 42, twice.value
""")
    shop.house("travel")
