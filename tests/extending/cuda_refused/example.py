"""cuExampleRefused is exported, and says that it is not supported."""
NEEDS = ["cuda_release"]
TARGETS = ["api_cuda_test", "outboard_shim_cuda"]


def apply(copy):
    copy.append("src/api/cuda/interop.def", "REFUSED(cuExampleRefused, graphics; since 13010)\n")


def check(shop):
    shop.cuda("""
assert cuda.cuExampleRefused(None) == 801
assert address_of("cuExampleRefused") == (None, 1)
""")
    shop.unit_tests("api_cuda_test", "coverage.*")
