// Functions that take names of files mean the files of this program, in its own root and with its own rights.
// usage: foreign_paths CODE ROOT: CODE is a file of PTX. The program then changes its root to ROOT (which
// only root may), where that name means nothing any more.
#include <cuda.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstring>
#include <string>

#include "../common.hh"

namespace {

CUresult load_module(const char* name) {
  CUmodule module = nullptr;
  const CUresult code = cuModuleLoad(&module, name);
  if (code == CUDA_SUCCESS) cuModuleUnload(module);
  return code;
}

CUresult load_library(const char* name) {
  CUlibrary library = nullptr;
  const CUresult code = cuLibraryLoadFromFile(&library, name, nullptr, nullptr, 0, nullptr, nullptr, 0);
  if (code == CUDA_SUCCESS) cuLibraryUnload(library);
  return code;
}

CUresult link_file(const char* name) {
  CUlinkState state = nullptr;
  MUST(cuLinkCreate(0, nullptr, nullptr, &state));
  const CUresult code = cuLinkAddFile(state, CU_JIT_INPUT_PTX, name, 0, nullptr, nullptr);
  cuLinkDestroy(state);
  return code;
}

CUresult print_graph(const char* name) {
  CUgraph graph = nullptr;
  CUgraphNode node = nullptr;
  MUST(cuGraphCreate(&graph, 0));
  MUST(cuGraphAddEmptyNode(&node, graph, nullptr, 0));
  const CUresult code = cuGraphDebugDotPrint(graph, name, 0);
  cuGraphDestroy(graph);
  return code;
}

bool exists(const std::string& name) { return access(name.c_str(), F_OK) == 0; }

/// Names of files that are not images, or that may not be read. A library is loaded when it is used: a real
/// driver accepts any file as one.
void not_code(const char* name) {
  const CUresult code = load_module(name);
  if (code == CUDA_SUCCESS) std::printf("%s was loaded\n", name);
  EXPECT(code != CUDA_SUCCESS);
}

}  // namespace

int main(int count, char** values) {
  CUdevice device = 0;
  CUcontext context = nullptr;
  MUST(cuInit(0));
  MUST(cuDeviceGet(&device, 0));
  MUST(cuDevicePrimaryCtxRetain(&context, device));
  MUST(cuCtxSetCurrent(context));
  for (const char* name : {"/etc/shadow", "/proc/self/environ", "/dev/null", "/", "", "/no/such/file"})
    not_code(name);
  if (count > 2) {
    const std::string code = values[1], root = values[2], printed = root + "/graph.dot";
    MUST(load_module(code.c_str()));
    MUST(load_library(code.c_str()));
    MUST(link_file(code.c_str()));
    MUST(print_graph(printed.c_str()));
    EXPECT(exists(printed) && unlink(printed.c_str()) == 0);
    EXPECT(print_graph((root + "/no/such/folder/graph.dot").c_str()) != CUDA_SUCCESS);
    EXPECT(chroot(root.c_str()) == 0 && chdir("/") == 0);
    EXPECT(load_module(code.c_str()) == CUDA_ERROR_FILE_NOT_FOUND);
    EXPECT(load_library(code.c_str()) == CUDA_ERROR_FILE_NOT_FOUND);
    EXPECT(link_file(code.c_str()) == CUDA_ERROR_FILE_NOT_FOUND);
    EXPECT(print_graph("/inside.dot") == CUDA_SUCCESS && exists("/inside.dot"));
    EXPECT(print_graph(printed.c_str()) != CUDA_SUCCESS && !exists(printed));
  }
  MUST(cuDevicePrimaryCtxRelease(device));
  return pass("foreign_paths");
}
