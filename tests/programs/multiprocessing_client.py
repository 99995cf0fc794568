"""CUDA in the children of Python's multiprocessing, by each way in which it starts them: a parent that has not used CUDA
may fork; one that has may spawn; a forked child of that one gets error 3."""
import ctypes
import multiprocessing
import sys

SIZE = 1 << 20


def initialize():
    cuda = ctypes.CDLL("libcuda.so.1")
    return cuda, cuda.cuInit(0)


def work(value):
    """The sum of bytes that the device has set to value."""
    cuda, code = initialize()
    assert code == 0, code
    device, context, memory = ctypes.c_int(), ctypes.c_void_p(), ctypes.c_uint64()
    host = (ctypes.c_ubyte * SIZE)()

    def must(code):
        assert code == 0, code

    must(cuda.cuDeviceGet(ctypes.byref(device), 0))
    must(cuda.cuDevicePrimaryCtxRetain(ctypes.byref(context), device))
    must(cuda.cuCtxSetCurrent(context))
    must(cuda.cuMemAlloc_v2(ctypes.byref(memory), ctypes.c_size_t(SIZE)))
    must(cuda.cuMemsetD8_v2(memory, ctypes.c_ubyte(value), ctypes.c_size_t(SIZE)))
    must(cuda.cuMemcpyDtoH_v2(host, memory, ctypes.c_size_t(SIZE)))
    must(cuda.cuMemFree_v2(memory))
    return sum(bytes(host))  # of an array it would take ten times as long


def in_children(method):
    with multiprocessing.get_context(method).Pool(2) as pool:
        assert pool.map(work, range(5)) == [value * SIZE for value in range(5)], method


def not_initialized(answers):
    answers.put(initialize()[1])


def main():
    in_children("fork")
    in_children("spawn")
    assert work(3) == 3 * SIZE
    in_children("spawn")
    in_children("forkserver")
    fork = multiprocessing.get_context("fork")
    answers = fork.Queue()
    child = fork.Process(target=not_initialized, args=(answers,))
    child.start()
    assert answers.get(timeout=30) == 3
    child.join()
    assert child.exitcode == 0 and work(4) == 4 * SIZE
    print("PASS multiprocessing_client")


if __name__ == "__main__":
    sys.exit(main())
