// Device facts of the mock: driver version, one sm_90 board (132 multiprocessors, 80 GiB), its attributes.
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "device/mock/state.hh"

namespace outboard::device::mock {
namespace {

struct attribute {
  int id, value;
};

// The attributes of an H100-like board; ids that are not listed are 0 (features that it lacks). 135, 137 and
// 138 belong to Windows or are unused.
constexpr attribute sm90[] = {
    {1, 1024},     {2, 1024},       {3, 1024},         {4, 64},           {5, 2147483647},  {6, 65535},
    {7, 65535},    {8, 49152},      {9, 65536},        {10, 32},          {11, 2147483647}, {12, 65536},
    {13, 1980000}, {14, 512},       {15, 1},           {16, 132},         {19, 1},          {21, 131072},
    {22, 131072},  {23, 65536},     {24, 16384},       {25, 16384},       {26, 16384},      {27, 32768},
    {28, 32768},   {29, 2048},      {30, 512},         {31, 1},           {32, 1},          {33, 0x1b},
    {35, 0},       {36, 2619000},   {37, 5120},        {38, 52428800},    {39, 2048},       {40, 3},
    {41, 1},       {42, 32768},     {43, 2048},        {44, 1},           {45, 32768},      {46, 32768},
    {47, 8192},    {48, 8192},      {49, 32768},       {51, 32},          {52, 32768},      {53, 32768},
    {54, 2046},    {55, 32768},     {56, 131072},      {57, 65536},       {58, 16384},      {59, 16384},
    {60, 16384},   {61, 32768},     {62, 2048},        {63, 32768},       {64, 32768},      {65, 2048},
    {66, 32768},   {67, 32768},     {68, 2046},        {69, 268435456},   {70, 131072},     {71, 65000},
    {72, 2097120}, {73, 32768},     {74, 32768},       {75, 9},           {76, 0},          {77, 32768},
    {78, 1},       {79, 1},         {80, 1},           {81, 233472},      {82, 65536},      {83, 1},
    {87, 2},       {89, 1},         {90, 1},           {91, 1},           {92, 1},          {93, 1},
    {94, 1},       {95, 1},         {97, 232448},      {99, 1},           {102, 1},         {103, 1},
    {106, 32},     {108, 32768000}, {109, 134213632},  {111, 1024},       {112, 1},         {113, 1},
    {115, 1},      {119, 1},        {120, 1},          {121, 1},          {122, 1},         {123, 1},
    {125, 1},      {126, 4},        {127, 1},          {129, 1},          {131, -1},        {132, 1},
    {134, -1},     {136, 7},        {139, 0x233010de}, {140, 0x16c110de},
};

constexpr char board_name[] = "Outboard mock device";
constexpr unsigned char board_uuid[16] = {0x6d, 0x6f, 0x63, 0x6b, 0, 0, 0x40, 0, 0x80, 0, 0, 0, 0, 0, 0, 1};
constexpr char bus_id[] = "0000:1B:00.0";

// The driver's table 1734dc26: clusters of eight pairs of multiprocessors.
CUresult layout_get(std::uint8_t** clusters, std::uint8_t** numbers) {
  constexpr std::size_t pairs = 66;
  *clusters = static_cast<std::uint8_t*>(std::malloc(pairs));
  *numbers = static_cast<std::uint8_t*>(std::malloc(pairs));
  for (std::size_t n = 0; n < pairs; ++n) {
    (*clusters)[n] = static_cast<std::uint8_t>(n % 8);
    (*numbers)[n] = static_cast<std::uint8_t>(n / 8);
  }
  return CUDA_SUCCESS;
}
CUresult layout_release(std::uint8_t* clusters, std::uint8_t* numbers) {
  std::free(clusters);
  std::free(numbers);
  return CUDA_SUCCESS;
}
union word {
  std::size_t size;
  CUresult (*get)(std::uint8_t**, std::uint8_t**);
  CUresult (*release)(std::uint8_t*, std::uint8_t*);
};
constexpr word layout[17] = {
    {.size = sizeof layout},     {}, {}, {}, {.get = layout_get}, {}, {}, {}, {}, {}, {}, {}, {},
    {.release = layout_release}, {}, {}, {}};

CUresult get_export_table(const void** table, const CUuuid* id) {
  if (static_cast<unsigned char>(id->bytes[0]) != 0x17 || static_cast<unsigned char>(id->bytes[1]) != 0x34)
    return CUDA_ERROR_INVALID_VALUE;
  return *table = layout, CUDA_SUCCESS;
}

CUresult init(unsigned flags) {
  if (flags != 0) return CUDA_ERROR_INVALID_VALUE;
  std::lock_guard lock(here().mutex);
  here().initialised = true;
  return CUDA_SUCCESS;
}

CUresult driver_get_version(int* version) { return *version = api::described_version, CUDA_SUCCESS; }
CUresult device_get_count(int* count) { return *count = 1, CUDA_SUCCESS; }

CUresult device_get(CUdevice* device, int ordinal) {
  if (ordinal != 0) return CUDA_ERROR_INVALID_DEVICE;
  return *device = 0, CUDA_SUCCESS;
}

CUresult device_get_name(char* name, int length, CUdevice device) {
  if (device != 0) return CUDA_ERROR_INVALID_DEVICE;
  std::snprintf(name, static_cast<std::size_t>(length), "%s", board_name);
  return CUDA_SUCCESS;
}

CUresult device_get_uuid(CUuuid* uuid, CUdevice device) {
  if (device != 0) return CUDA_ERROR_INVALID_DEVICE;
  std::memcpy(uuid->bytes, board_uuid, sizeof board_uuid);
  return CUDA_SUCCESS;
}

CUresult device_total_memory(std::size_t* bytes, CUdevice device) {
  if (device != 0) return CUDA_ERROR_INVALID_DEVICE;
  std::lock_guard lock(here().mutex);
  return *bytes = here().total_memory, CUDA_SUCCESS;
}

CUresult device_get_attribute(int* value, CUdevice_attribute id, CUdevice device) {
  if (device != 0) return CUDA_ERROR_INVALID_DEVICE;
  if (id < 1 || id >= CU_DEVICE_ATTRIBUTE_MAX) return CUDA_ERROR_INVALID_VALUE;
  std::lock_guard lock(here().mutex);
  return *value = here().attributes[static_cast<std::size_t>(id)], CUDA_SUCCESS;
}

CUresult device_get_pci_bus_id(char* text, int length, CUdevice device) {
  if (device != 0) return CUDA_ERROR_INVALID_DEVICE;
  std::snprintf(text, static_cast<std::size_t>(length), "%s", bus_id);
  return CUDA_SUCCESS;
}

CUresult device_get_by_pci_bus_id(CUdevice* device, const char* text) {
  if (std::strcmp(text, bus_id) != 0) return CUDA_ERROR_INVALID_DEVICE;
  return *device = 0, CUDA_SUCCESS;
}

CUresult compute_capability(int* major, int* minor, CUdevice device) {
  if (device != 0) return CUDA_ERROR_INVALID_DEVICE;
  std::lock_guard lock(here().mutex);
  *major = here().attributes[CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR];
  *minor = here().attributes[CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR];
  return CUDA_SUCCESS;
}

CUresult get_loading_mode(CUmoduleLoadingMode* mode) { return *mode = CU_MODULE_LAZY_LOADING, CUDA_SUCCESS; }

CUresult error_name(CUresult error, const char** text) {
  if (error != CUDA_SUCCESS)
    return *text = nullptr, CUDA_ERROR_INVALID_VALUE;  // the front-end has the real list
  return *text = "CUDA_SUCCESS", CUDA_SUCCESS;
}

CUresult parameter_info(std::size_t index, std::size_t* offset, std::size_t* size) {
  std::lock_guard lock(here().mutex);
  const auto& all = here().parameters;
  if (index >= all.size()) return CUDA_ERROR_INVALID_VALUE;
  *offset = all[index].offset;
  if (size != nullptr) *size = all[index].size;
  return CUDA_SUCCESS;
}

CUresult kernel_get_param_info(CUkernel, std::size_t index, std::size_t* offset, std::size_t* size) {
  return parameter_info(index, offset, size);
}

CUresult func_get_param_info(CUfunction, std::size_t index, std::size_t* offset, std::size_t* size) {
  return parameter_info(index, offset, size);
}

CUresult function_attribute(int* value, CUfunction_attribute id) {
  switch (id) {
    case CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK:
      *value = 1024;
      break;
    case CU_FUNC_ATTRIBUTE_NUM_REGS:
      *value = 32;
      break;
    case CU_FUNC_ATTRIBUTE_PTX_VERSION:
      *value = 90;
      break;
    case CU_FUNC_ATTRIBUTE_BINARY_VERSION:
      *value = 90;
      break;
    case CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES:
      *value = 49152;
      break;
    case CU_FUNC_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT:
      *value = -1;
      break;
    default:
      *value = 0;
      break;
  }
  return CUDA_SUCCESS;
}

CUresult func_get_attribute(int* value, CUfunction_attribute id, CUfunction) {
  return function_attribute(value, id);
}
CUresult kernel_get_attribute(int* value, CUfunction_attribute id, CUkernel, CUdevice) {
  return function_attribute(value, id);
}

CUresult occupancy(int* blocks, CUfunction, int block_size, std::size_t) {
  if (block_size <= 0) return CUDA_ERROR_INVALID_VALUE;
  return *blocks = std::max(1, 2048 / block_size), CUDA_SUCCESS;
}

CUresult occupancy_with_flags(int* blocks, CUfunction f, int block_size, std::size_t shared, unsigned) {
  return occupancy(blocks, f, block_size, shared);
}

}  // namespace

void set_default_attributes(state& s) {
  for (const attribute& a : sm90) s.attributes[static_cast<std::size_t>(a.id)] = a.value;
}

void set_fact_behaviours(api::driver_table& b) {
  b.cuInit = init;
  b.cuGetExportTable = get_export_table;
  b.cuDriverGetVersion = driver_get_version;
  b.cuDeviceGetCount = device_get_count;
  b.cuDeviceGet = device_get;
  b.cuDeviceGetName = device_get_name;
  b.cuDeviceGetUuid = device_get_uuid;
  b.cuDeviceGetUuid_v2 = device_get_uuid;
  b.cuDeviceTotalMem_v2 = device_total_memory;
  b.cuDeviceGetAttribute = device_get_attribute;
  b.cuDeviceGetPCIBusId = device_get_pci_bus_id;
  b.cuDeviceGetByPCIBusId = device_get_by_pci_bus_id;
  b.cuDeviceComputeCapability = compute_capability;
  b.cuModuleGetLoadingMode = get_loading_mode;
  b.cuGetErrorName = error_name;
  b.cuGetErrorString = error_name;
  b.cuKernelGetParamInfo = kernel_get_param_info;
  b.cuFuncGetParamInfo = func_get_param_info;
  b.cuFuncGetAttribute = func_get_attribute;
  b.cuKernelGetAttribute = kernel_get_attribute;
  b.cuOccupancyMaxActiveBlocksPerMultiprocessor = occupancy;
  b.cuOccupancyMaxActiveBlocksPerMultiprocessorWithFlags = occupancy_with_flags;
}

}  // namespace outboard::device::mock
