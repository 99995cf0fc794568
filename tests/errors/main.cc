// Compares wrong calls of the driver API with the codes of a real driver (recorded.txt); see harness.hh for
// the usage. It is an ordinary program that uses libcuda.so.1 and knows nothing of Outboard.
#include "world.hh"

namespace wrong_calls {

const char* const text_of_module = R"(
.version 7.0
.target sm_75
.address_size 64
.visible .global .align 4 .b32 number;
.visible .global .attribute(.managed) .align 4 .b32 shared_number;
.visible .const .align 4 .b32 constant = 5;
.extern .shared .align 16 .b8 dynamic[];
.visible .entry nothing() { ret; }
.visible .entry store(.param .u64 address, .param .u32 value)
{
  .reg .b64 a; .reg .b32 v;
  ld.param.u64 a, [address]; ld.param.u32 v, [value];
  cvta.to.global.u64 a, a; st.global.u32 [a], v; ret;
}
.visible .entry few() .maxntid 64, 1, 1 { ret; }
.visible .entry exactly() .reqntid 32, 2, 1 { ret; }
.visible .entry much()
{
  .shared .align 4 .b8 fixed[40960];
  .reg .b32 r;
  mov.u32 r, %tid.x; st.shared.u32 [fixed], r; ret;
}
.visible .entry uses_dynamic()
{
  .reg .b32 r;
  mov.u32 r, %tid.x; st.shared.u32 [dynamic], r; ret;
}
.visible .entry traps() { trap; ret; }
.visible .entry wild()
{
  .reg .b64 a; .reg .b32 v;
  mov.u64 a, 64; mov.u32 v, 1; st.global.u32 [a], v; ret;
}
)";

CUfunction function_named(const char* name) {
  CUfunction f = nullptr;
  NEED(cuModuleGetFunction(&f, w.module, name));
  return f;
}

namespace {

void make_objects() {
  NEED(cuStreamCreate(&w.stream, CU_STREAM_NON_BLOCKING));
  NEED(cuStreamCreate(&w.other, CU_STREAM_NON_BLOCKING));
  NEED(cuEventCreate(&w.event, 0));
  NEED(cuModuleLoadData(&w.module, text_of_module));
  w.function = function_named("store");
  NEED(cuLibraryLoadData(&w.library, text_of_module, nullptr, nullptr, 0, nullptr, nullptr, 0));
  NEED(cuLibraryGetKernel(&w.kernel, w.library, "store"));
  NEED(cuMemAlloc(&w.memory, world::bytes));
  NEED(cuMemHostAlloc(&w.pinned, 65536, 0));
  NEED(cuGraphCreate(&w.graph, 0));
  NEED(cuGraphAddEmptyNode(&w.node, w.graph, nullptr, 0));
  NEED(cuGraphInstantiate(&w.exec, w.graph, 0));
  CUDA_ARRAY_DESCRIPTOR array{};
  array.Width = 64, array.Height = 64, array.Format = CU_AD_FORMAT_FLOAT, array.NumChannels = 1;
  NEED(cuArrayCreate(&w.array, &array));
  NEED(cuDeviceGetDefaultMemPool(&w.pool, w.device));
}

bool is(const state& in, std::initializer_list<const state*> these) {
  return std::find(these.begin(), these.end(), &in) != these.end();
}

void make_world(const state& in) {
  static bool made = false;
  if (made) return;
  NEED(cuInit(0));
  NEED(cuDeviceGet(&w.device, 0));
  if (is(in, {&after_destroy, &after_destroy_alone})) {
    NEED(cuCtxCreate(&w.context, nullptr, 0, w.device));
  } else {
    NEED(cuDevicePrimaryCtxRetain(&w.context, w.device));
    NEED(cuCtxSetCurrent(w.context));
  }
  make_objects();
  NEED(cuCtxSynchronize());
  made = true;
}

void launch_and_fail(const char* name, CUresult expected) {
  NEED(cuLaunchKernel(function_named(name), 1, 1, 1, 1, 1, 1, 0, nullptr, nullptr, nullptr));
  if (const CUresult code = cuCtxSynchronize(); code != expected) throw not_set_up{code, __LINE__};
}

class driver_program final : public program {
 public:
  std::vector<wrong_call> table() const override {
    std::vector<wrong_call> all;
    for (const auto& chapter :
         {initialization_calls(), device_calls(),         context_calls(),   module_calls(),
          library_calls(),        link_calls(),           memory_calls(),    host_memory_calls(),
          copy_calls(),           shaped_copy_calls(),    fill_calls(),      array_calls(),
          texture_calls(),        virtual_memory_calls(), pool_calls(),      stream_calls(),
          event_calls(),          capture_calls(),        graph_calls(),     graph_node_calls(),
          graph_exec_calls(),     launch_calls(),         occupancy_calls(), stream_memory_calls(),
          pointer_calls(),        managed_calls(),        sharing_calls(),   other_calls(),
          lifetime_calls()})
      all.insert(all.end(), chapter.begin(), chapter.end());
    return all;
  }

  std::string device() override {
    char name[128] = "?";
    int version = 0;
    cuInit(0), cuDriverGetVersion(&version), cuDeviceGetName(name, sizeof name, 0);
    return std::string(name) + ", driver API " + std::to_string(version);
  }

  void prepare(const state& in) override {
    o = outputs{};
    if (&in == &before_init) return;
    if (ruined_) return;
    make_world(in);
    CUcontext left = nullptr;
    while (cuCtxGetCurrent(&left) == CUDA_SUCCESS && left) NEED(cuCtxPopCurrent(nullptr));
    if (is(in, {&no_context, &without_context})) {
      NEED(cuCtxSynchronize_v2(w.context));  // finishes what earlier calls have left
      return;
    }
    NEED(cuCtxSetCurrent(w.context));
    if (&in == &capturing) NEED(cuStreamBeginCapture(w.stream, CU_STREAM_CAPTURE_MODE_GLOBAL));
    if (&in == &relaxed) {
      NEED(cuStreamDestroy(w.stream));
      NEED(cuStreamCreate(&w.stream, 0));
      NEED(cuStreamBeginCapture(w.stream, CU_STREAM_CAPTURE_MODE_RELAXED));
    }
    ruined_ = true;
    if (is(in, {&after_reset, &after_reset_alone})) {
      NEED(cuDevicePrimaryCtxReset(w.device));
    } else if (is(in, {&after_destroy, &after_destroy_alone})) {
      NEED(cuCtxDestroy(w.context));
    } else if (is(in, {&after_trap, &after_trap_alone})) {
      launch_and_fail("traps", CUDA_ERROR_LAUNCH_FAILED);
    } else if (is(in, {&after_wild, &after_wild_alone})) {
      launch_and_fail("wild", CUDA_ERROR_ILLEGAL_ADDRESS);
    } else {
      ruined_ = false;
    }
  }

  std::string after(const state& in) override {
    if (ruined_ || is(in, {&before_init, &no_context, &without_context, &after_fork})) return "-";
    std::string codes;
    if (&in == &capturing || &in == &relaxed) {
      CUgraph graph = nullptr;
      codes = std::to_string(cuStreamEndCapture(w.stream, &graph)) + " ";
      if (graph) cuGraphDestroy(graph);
    }
    CUcontext left = nullptr;
    while (cuCtxGetCurrent(&left) == CUDA_SUCCESS && left && cuCtxPopCurrent(nullptr) == CUDA_SUCCESS)
      continue;
    const CUresult current = cuCtxSetCurrent(w.context);
    return codes + std::to_string(current != CUDA_SUCCESS ? current : cuCtxSynchronize());
  }

  bool healthy(const std::string& after) override {
    return after == "-" || after == "0" || after.ends_with(" 0");
  }

 private:
  bool ruined_ = false;  ///< the state is the one after the context's end
};

}  // namespace
}  // namespace wrong_calls

int main(int count, char** values) {
  wrong_calls::driver_program p;
  return wrong_calls::run(p, count, values);
}
