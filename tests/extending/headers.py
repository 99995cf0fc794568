"""The headers of a made-up CUDA toolkit and of a made-up OpenCL: the real ones, with some functions more."""

FUNCTIONS = {
    "cuExampleCall": "(int *value, CUdevice dev)",
    "cuExamplePost": "(unsigned int value)",
    "cuExampleCustom": "(unsigned int *sum, unsigned int a, unsigned int b)",
    "cuExampleLocal": "(int *answer)",
}
VERSION = 13000  # as the real one's: tests of the tables look at headers of this version only


def in_c(lines):
    return "\n#ifdef __cplusplus\nextern \"C\" {\n#endif\n" + "".join(lines) + "#ifdef __cplusplus\n}\n#endif\n"


def write_if_new(path, text):
    if not path.exists() or path.read_text() != text:
        path.write_text(text)


def link_all_but(names, real, folder):
    folder.mkdir(parents=True, exist_ok=True)
    for entry in real.iterdir():
        link = folder / entry.name
        if entry.name not in names and not link.is_symlink():
            link.symlink_to(entry.resolve())


def make_opencl(real, folder):
    """`real` has CL/cl.h; a function more is in it, and in the table of an ICD."""
    link_all_but(("cl.h", "cl_icd.h"), real / "CL", folder / "CL")
    write_if_new(folder / "CL/cl.h", (real / "CL/cl.h").read_text() + in_c(
        ["extern CL_API_ENTRY cl_int CL_API_CALL clExampleFunction(cl_device_id device, cl_ulong *value);\n"]))
    text = (real / "CL/cl_icd.h").read_text()
    member = "  cl_int (CL_API_CALL *clExampleFunction)(cl_device_id device, cl_ulong *value);\n"
    end = text.rindex("} cl_icd_dispatch;")
    write_if_new(folder / "CL/cl_icd.h", text[:end] + member + text[end:])


def make_toolkit(real, folder):
    """Headers alone: without nvcc, which no example needs."""
    include = folder / "include"
    link_all_but(("cuda.h", "cudaTypedefs.h"), real / "include", include)
    text = (real / "include/cuda.h").read_text(encoding="latin-1")
    end = text.rindex("#ifdef __cplusplus\n}")
    more = "".join(f"CUresult CUDAAPI {name}{parameters};\n" for name, parameters in FUNCTIONS.items())
    write_if_new(include / "cuda.h", text[:end] + more + text[end:])
    text = (real / "include/cudaTypedefs.h").read_text(encoding="latin-1")
    write_if_new(include / "cudaTypedefs.h", text + in_c(
        f"typedef CUresult (CUDAAPI *PFN_{name}_v{VERSION}){parameters};\n" for name, parameters in FUNCTIONS.items()))
