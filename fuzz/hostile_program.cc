#include "hostile_program.hh"

#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstring>

#include "driver_calls.hh"

namespace outboard::fuzz {
namespace {

constexpr char image[] = R"(
.version 7.0
.target sm_70
.address_size 64
.visible .global .align 8 .b64 shown;
.visible .entry twice(.param .u64 data, .param .u32 n, .param .align 8 .b8 pair[24]) { ret; }
)";

std::atomic<unsigned> ran{0};
void CUDA_CB host_function(void*) { ++ran; }
void CUDA_CB stream_function(CUstream, CUresult, void*) { ++ran; }

CUmemAllocationProp on_device(unsigned how) {
  CUmemAllocationProp made{};
  made.type = CU_MEM_ALLOCATION_TYPE_PINNED;
  made.location = {CU_MEM_LOCATION_TYPE_DEVICE, 0};
  if (how & 1) made.requestedHandleTypes = CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR;
  return made;
}

}  // namespace

void program::start() {
  if (driver::cuInit(0) != CUDA_SUCCESS) return;
  driver::cuDevicePrimaryCtxRetain(&context_, 0);
  driver::cuCtxSetCurrent(context_);
}

void program::devices(unsigned which, unsigned how) {
  int number = 0;
  std::array<char, 100> text{};
  std::size_t size = 0;
  CUuuid id{};
  CUdevResource resource{};
  std::array<CUdevResource, 4> split{};
  auto groups = static_cast<unsigned>(split.size());
  switch (which) {
    case 0:
      driver::cuDeviceGetCount(&number);
      driver::cuDeviceGetName(text.data(), static_cast<int>(how % text.size()), 0);
      return;
    case 1:
      driver::cuDeviceTotalMem_v2(&size, 0);
      driver::cuDeviceGetUuid(&id, 0);
      return;
    case 2:
      for (int i = 0; i < 150; ++i)
        driver::cuDeviceGetAttribute(&number, static_cast<CUdevice_attribute>(i), 0);
      return;
    case 3:
      driver::cuDeviceGetPCIBusId(text.data(), static_cast<int>(how % text.size()), 0);
      return;
    case 4:
      driver::cuDeviceGetP2PAttribute(&number, static_cast<CUdevice_P2PAttribute>(how % 6), 0,
                                      how & 64 ? 1 : 0);
      return;
    case 5:
      if (driver::cuDeviceGetDevResource(0, &resource, CU_DEV_RESOURCE_TYPE_SM) == CUDA_SUCCESS)
        driver::cuDevSmResourceSplitByCount(split.data(), &groups, &resource, nullptr, 0, how);
      return;
    case 6:
      driver::cuCtxGetLimit(&size, static_cast<CUlimit>(how % 12));
      driver::cuCtxSetLimit(static_cast<CUlimit>(how % 12), 1u << how % 16);
      return;
    default:
      driver::cuDeviceGetGraphMemAttribute(0, static_cast<CUgraphMem_attribute>(how % 4), &size);
      return;
  }
}

void program::memory(unsigned which, unsigned how) {
  std::size_t free = 0, total = 0;
  switch (which) {
    case 0:
      driver::cuMemAlloc_v2(&memory_, size(how));
      return;
    case 1:
      driver::cuMemFree_v2(memory_);
      return;
    case 2:
      if (driver::cuMemHostAlloc(&locked_, size(how), how & 32 ? CU_MEMHOSTALLOC_DEVICEMAP : 0) ==
          CUDA_SUCCESS)
        std::memset(locked_, 1, size(how));
      return;
    case 3:
      driver::cuMemFreeHost(locked_);
      locked_ = nullptr;
      return;
    case 4:
      if (driver::cuMemAllocManaged(&managed_, size(how), CU_MEM_ATTACH_GLOBAL) == CUDA_SUCCESS)
        std::memset(reinterpret_cast<void*>(managed_), 2, size(how));
      return;
    case 5:
      driver::cuMemHostRegister_v2(more_.data(), std::min(size(how), room), how & 1);
      return;
    case 6:
      driver::cuMemHostUnregister(more_.data());
      return;
    default:
      driver::cuMemGetInfo_v2(&free, &total);
      return;
  }
}

void program::copies(unsigned which, unsigned how) {
  const std::size_t bytes = std::min(size(how), room);
  CUDA_MEMCPY2D flat{};
  flat.srcMemoryType = how & 32 ? CU_MEMORYTYPE_HOST : CU_MEMORYTYPE_DEVICE;
  flat.dstMemoryType = how & 32 ? CU_MEMORYTYPE_DEVICE : CU_MEMORYTYPE_HOST;
  flat.srcHost = flat.dstHost = bytes_.data();
  flat.srcDevice = flat.dstDevice = memory_;
  flat.srcPitch = flat.dstPitch = 64 + how;
  flat.WidthInBytes = 1 + how % 64, flat.Height = 1 + how;
  switch (which) {
    case 0:
      driver::cuMemcpyHtoD_v2(memory_, bytes_.data(), bytes);
      return;
    case 1:
      driver::cuMemcpyDtoH_v2(bytes_.data(), memory_, bytes);
      return;
    case 2:
      driver::cuMemcpyDtoHAsync_v2(how & 64 && locked_ ? locked_ : bytes_.data(), memory_, bytes, stream_);
      return;
    case 3:
      driver::cuMemcpyHtoDAsync_v2(memory_, bytes_.data(), bytes, stream_);
      return;
    case 4:
      driver::cuMemcpy2D_v2(&flat);
      return;
    case 5:
      driver::cuMemcpyDtoD_v2(memory_, managed_ ? managed_ : memory_, bytes);
      return;
    case 6:
      driver::cuMemsetD32_v2(memory_, how, bytes / 4);
      return;
    default:
      // An address of nobody's would be the program's own.
      if (memory_) driver::cuMemcpy(reinterpret_cast<CUdeviceptr>(bytes_.data()), memory_, bytes);
      return;
  }
}

void program::code(unsigned which, unsigned how) {
  std::uint64_t pointer = memory_;
  std::uint32_t count = 3;
  std::array<std::byte, 24> pair{};
  std::array<void*, 3> parameters{&pointer, &count, pair.data()};
  int number = 0, other = 0;
  std::size_t offset = 0, bytes = 0;
  std::array<CUfunction, 3> functions{};
  switch (which) {
    case 0:
      driver::cuModuleLoadData(&module_, image);
      return;
    case 1:
      driver::cuModuleGetFunction(&function_, module_, "twice");
      return;
    case 2:
      driver::cuLibraryLoadData(&library_, image, nullptr, nullptr, 0, nullptr, nullptr, 0);
      driver::cuLibraryGetKernel(&kernel_, library_, "twice");
      driver::cuKernelGetFunction(&function_, kernel_);
      return;
    case 3:
      driver::cuLaunchKernel(function_, 1, 1, 1, 1, 1, 1, 0, stream_, parameters.data(), nullptr);
      return;
    case 4:
      driver::cuFuncGetAttribute(&number, static_cast<CUfunction_attribute>(how % 18), function_);
      driver::cuFuncGetParamInfo(function_, how % 8, &offset, &bytes);
      driver::cuKernelGetParamInfo(kernel_, how % 8, &offset, &bytes);
      return;
    case 5:
      driver::cuModuleGetGlobal_v2(&shown_, &bytes, module_, "shown");
      driver::cuMemcpyDtoH_v2(bytes_.data(), shown_, 8);
      return;
    case 6:
      driver::cuOccupancyMaxActiveBlocksPerMultiprocessor(&number, function_, static_cast<int>(how), 0);
      driver::cuOccupancyMaxPotentialBlockSize(&number, &other, function_, nullptr, how, 0);
      driver::cuOccupancyAvailableDynamicSMemPerBlock(&bytes, function_, 1, static_cast<int>(how));
      return;
    default:
      driver::cuModuleEnumerateFunctions(functions.data(), how % 4, module_);
      driver::cuModuleUnload(module_);
      return;
  }
}

void program::links(unsigned which, unsigned how) {
  void* cubin = nullptr;
  std::size_t bytes = 0;
  std::array<char, 256> log{};
  std::array<CUjit_option, 2> options{CU_JIT_ERROR_LOG_BUFFER, CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES};
  std::array<void*, 2> values{log.data(), reinterpret_cast<void*>(static_cast<std::uintptr_t>(how))};
  switch (which % 4) {
    case 0:
      driver::cuLinkCreate_v2(how & 1 ? 2 : 0, options.data(), values.data(), &link_);
      return;
    case 1:
      driver::cuLinkAddData_v2(link_, CU_JIT_INPUT_PTX, const_cast<char*>(image), sizeof image, "twice", 0,
                               nullptr, nullptr);
      return;
    case 2:
      // The link's own memory, until it is destroyed.
      if (driver::cuLinkComplete(link_, &cubin, &bytes) == CUDA_SUCCESS && cubin)
        more_.assign(static_cast<std::byte*>(cubin), static_cast<std::byte*>(cubin) + std::min(bytes, room)),
            more_.resize(room);
      driver::cuLinkDestroy(link_);
      link_ = nullptr;
      return;
    default:
      driver::cuModuleLoadDataEx(&module_, image, 2, options.data(), values.data());
      return;
  }
}

void program::streams(unsigned which, unsigned how) {
  CUevent& event = events_[how % 2];
  float time = 0;
  switch (which) {
    case 0:
      driver::cuStreamCreate(&stream_, how & 1);
      driver::cuEventCreate(&events_[0], 0);
      driver::cuEventCreate(&events_[1], 0);
      return;
    case 1:
      driver::cuStreamSynchronize(stream_);
      return;
    case 2:
      driver::cuStreamQuery(stream_);
      driver::cuEventQuery(event);
      return;
    case 3:
      driver::cuEventRecord(event, stream_);
      return;
    case 4:
      driver::cuEventSynchronize(event);
      driver::cuEventElapsedTime(&time, events_[0], events_[1]);
      return;
    case 5:
      driver::cuLaunchHostFunc(stream_, host_function, nullptr);
      return;
    case 6:
      driver::cuStreamAddCallback(stream_, stream_function, nullptr, 0);
      return;
    default:
      if (how & 1)
        driver::cuCtxSynchronize();
      else
        driver::cuStreamDestroy_v2(stream_);
      return;
  }
}

void program::graphs(unsigned which, unsigned how) {
  std::uint64_t pointer = memory_;
  std::uint32_t count = 3;
  std::array<std::byte, 24> pair{};
  std::array<void*, 3> parameters{&pointer, &count, pair.data()};
  CUDA_KERNEL_NODE_PARAMS kernel{function_,         1,       1,       1,      1, 1, 1, 0,
                                 parameters.data(), nullptr, nullptr, nullptr};
  CUDA_MEMCPY3D copy{};
  copy.srcMemoryType = CU_MEMORYTYPE_DEVICE, copy.srcDevice = memory_;
  copy.dstMemoryType = CU_MEMORYTYPE_HOST, copy.dstHost = bytes_.data();
  copy.WidthInBytes = std::min(size(how), room), copy.Height = copy.Depth = 1;
  const CUDA_MEMSET_NODE_PARAMS set{memory_, 0, how, 4, 1 + how, 1};
  const CUDA_HOST_NODE_PARAMS host{host_function, nullptr};
  switch (which) {
    case 0:
      driver::cuGraphCreate(&graph_, 0);
      return;
    case 1:
      driver::cuGraphAddKernelNode_v2(&node_, graph_, nullptr, 0, &kernel);
      return;
    case 2:
      driver::cuGraphAddMemcpyNode(&node_, graph_, nullptr, 0, &copy, context_);
      return;
    case 3:
      driver::cuGraphAddMemsetNode(&node_, graph_, nullptr, 0, &set, context_);
      return;
    case 4:
      driver::cuGraphAddHostNode(&node_, graph_, nullptr, 0, &host);
      return;
    case 5:
      driver::cuGraphInstantiateWithFlags(&executable_, graph_, 0);
      return;
    case 6:
      driver::cuGraphLaunch(executable_, stream_);
      return;
    default:
      if (how & 1)
        driver::cuStreamBeginCapture_v2(stream_, CU_STREAM_CAPTURE_MODE_GLOBAL);
      else
        driver::cuStreamEndCapture(stream_, &graph_);
      return;
  }
}

void program::graph_questions(unsigned which, unsigned how) {
  std::array<CUgraphNode, 4> nodes{}, others{};
  std::size_t count = how % 5;
  CUgraphExecUpdateResultInfo result{};
  CUstreamCaptureStatus status{};
  cuuint64_t id = 0;
  CUgraph graph = nullptr;
  const CUgraphNode* dependencies = nullptr;
  CUDA_KERNEL_NODE_PARAMS kernel{};
  CUDA_MEMCPY3D copy{};
  CUgraphNodeType type{};
  switch (which) {
    case 0:
      driver::cuGraphGetNodes(graph_, how & 8 ? nullptr : nodes.data(), &count);
      return;
    case 1:
      driver::cuGraphGetEdges(graph_, nodes.data(), others.data(), &count);
      return;
    case 2:
      driver::cuGraphKernelNodeGetParams_v2(node_, &kernel);
      driver::cuGraphMemcpyNodeGetParams(node_, &copy);
      return;
    case 3:
      driver::cuGraphClone(&clone_, graph_);
      driver::cuGraphNodeFindInClone(&node_, node_, clone_);
      return;
    case 4:
      driver::cuGraphExecUpdate_v2(executable_, graph_, &result);
      return;
    case 5:
      if (driver::cuStreamGetCaptureInfo_v2(stream_, &status, &id, &graph, &dependencies, &count) ==
              CUDA_SUCCESS &&
          status == CU_STREAM_CAPTURE_STATUS_ACTIVE && dependencies && count != 0)
        node_ = dependencies[count - 1];
      return;
    case 6:
      driver::cuGraphNodeGetType(node_, &type);
      driver::cuGraphNodeGetDependencies(node_, nodes.data(), &count);
      driver::cuGraphDebugDotPrint(graph_, "/dev/null", 0);
      return;
    default:
      driver::cuGraphExecDestroy(executable_);
      driver::cuGraphDestroy(graph_);
      return;
  }
}

void program::pools(unsigned which, unsigned how) {
  CUmemPoolProps props{};
  props.allocType = CU_MEM_ALLOCATION_TYPE_PINNED;
  props.handleTypes = how & 1 ? CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR : CU_MEM_HANDLE_TYPE_NONE;
  props.location = {CU_MEM_LOCATION_TYPE_DEVICE, 0};
  std::uint64_t value = 0;
  int descriptor = -1;
  CUmemPoolPtrExportData exported{};
  CUipcMemHandle handle{};
  CUipcEventHandle event{};
  switch (which) {
    case 0:
      driver::cuMemPoolCreate(&pool_, &props);
      return;
    case 1:
      driver::cuDeviceGetDefaultMemPool(&pool_, 0);
      return;
    case 2:
      driver::cuMemAllocAsync(&pooled_, size(how), stream_);
      return;
    case 3:
      driver::cuMemFreeAsync(pooled_, stream_);
      return;
    case 4:
      driver::cuMemPoolGetAttribute(pool_, static_cast<CUmemPool_attribute>(1 + how % 8), &value);
      driver::cuMemPoolTrimTo(pool_, how);
      return;
    case 5:
      if (driver::cuMemPoolExportToShareableHandle(
              &descriptor, pool_, CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR, 0) == CUDA_SUCCESS)
        ::close(descriptor);
      driver::cuMemPoolExportPointer(&exported, pooled_);
      return;
    case 6:
      driver::cuIpcGetMemHandle(&handle, memory_);
      driver::cuIpcGetEventHandle(&event, events_[0]);
      return;
    default:
      driver::cuMemPoolDestroy(pool_);
      return;
  }
}

void program::addresses(unsigned which, unsigned how) {
  const std::size_t bytes = std::size_t{1 + how % 4} << 21;
  CUmemAllocationProp props = on_device(how);
  const CUmemAccessDesc access{{CU_MEM_LOCATION_TYPE_DEVICE, 0}, CU_MEM_ACCESS_FLAGS_PROT_READWRITE};
  std::size_t grain = 0;
  int descriptor = -1;
  unsigned long long flags = 0;
  switch (which) {
    case 0:
      driver::cuMemGetAllocationGranularity(&grain, &props, CU_MEM_ALLOC_GRANULARITY_MINIMUM);
      return;
    case 1:
      driver::cuMemCreate(&physical_, bytes, &props, 0);
      return;
    case 2:
      driver::cuMemAddressReserve(&reserved_, bytes, 0, 0, 0);
      return;
    case 3:
      driver::cuMemMap(reserved_, bytes, 0, physical_, 0);
      return;
    case 4:
      driver::cuMemSetAccess(reserved_, bytes, &access, 1);
      driver::cuMemGetAccess(&flags, &access.location, reserved_);
      return;
    case 5:
      if (driver::cuMemExportToShareableHandle(&descriptor, physical_,
                                               CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR, 0) == CUDA_SUCCESS)
        ::close(descriptor);
      return;
    case 6:
      driver::cuMemGetAllocationPropertiesFromHandle(&props, physical_);
      driver::cuMemUnmap(reserved_, bytes);
      return;
    default:
      driver::cuMemRelease(physical_);
      driver::cuMemAddressFree(reserved_, bytes);
      return;
  }
}

void program::arrays(unsigned which, unsigned how) {
  const CUDA_ARRAY_DESCRIPTOR shape{1u + how, 1u + how % 16, CU_AD_FORMAT_UNSIGNED_INT8, 4};
  CUDA_RESOURCE_DESC resource{};
  resource.resType = CU_RESOURCE_TYPE_ARRAY, resource.res.array.hArray = array_;
  const CUDA_TEXTURE_DESC texture{};
  CUDA_ARRAY3D_DESCRIPTOR described{};
  CUDA_ARRAY_MEMORY_REQUIREMENTS needs{};
  switch (which) {
    case 0:
      driver::cuArrayCreate_v2(&array_, &shape);
      return;
    case 1:
      driver::cuMemcpyHtoA_v2(array_, 0, bytes_.data(), 4 * (1u + how));
      return;
    case 2:
      driver::cuMemcpyAtoH_v2(bytes_.data(), array_, 0, 4 * (1u + how));
      return;
    case 3:
      driver::cuTexObjectCreate(&texture_, &resource, &texture, nullptr);
      return;
    case 4:
      driver::cuTexObjectGetResourceDesc(&resource, texture_);
      return;
    case 5:
      driver::cuArray3DGetDescriptor_v2(&described, array_);
      driver::cuArrayGetMemoryRequirements(&needs, array_, 0);
      return;
    default:
      driver::cuArrayDestroy(array_);
      return;
  }
}

void program::questions(unsigned which, unsigned how) {
  std::array<std::uint64_t, 8> room_for_one{};
  std::array<std::uint64_t, 2> first{}, second{};
  std::array<void*, 2> places{first.data(), second.data()};
  std::array<CUpointer_attribute, 2> asked{static_cast<CUpointer_attribute>(1 + how % 20),
                                           CU_POINTER_ATTRIBUTE_MEMORY_TYPE};
  const CUmemLocation location{CU_MEM_LOCATION_TYPE_DEVICE, 0};
  std::array<char, 200> log{};
  std::size_t bytes = log.size();
  unsigned long long id = 0;
  switch (which) {
    case 0:
      driver::cuPointerGetAttribute(room_for_one.data(), static_cast<CUpointer_attribute>(1 + how % 20),
                                    memory_);
      return;
    case 1:
      driver::cuPointerGetAttributes(2, asked.data(), places.data(), managed_);
      return;
    case 2:
      driver::cuMemRangeGetAttribute(room_for_one.data(), 4, static_cast<CUmem_range_attribute>(1 + how % 4),
                                     managed_, 64);
      return;
    case 3:
      driver::cuMemPrefetchAsync_v2(managed_, 4096, location, 0, stream_);
      return;
    case 4:
      if (managed_) bytes_[0] = *reinterpret_cast<volatile std::byte*>(managed_);
      return;
    case 5:
      driver::cuLogsDumpToMemory(nullptr, log.data(), &bytes, 0);
      return;
    case 6:
      driver::cuStreamGetId(stream_, &id);
      driver::cuStreamWriteValue32_v2(stream_, memory_, how, 0);
      return;
    default:
      driver::cuDevicePrimaryCtxReset_v2(0);
      return;
  }
}

void program::step(std::uint8_t which, std::uint8_t how) {
  using group = void (program::*)(unsigned, unsigned);
  static constexpr std::array<group, 12> groups{
      &program::devices, &program::memory,    &program::copies, &program::code,
      &program::links,   &program::streams,   &program::graphs, &program::graph_questions,
      &program::pools,   &program::addresses, &program::arrays, &program::questions};
  (this->*groups[which / 8u % groups.size()])(which % 8u, how);
}

}  // namespace outboard::fuzz
