// Chapters initialization, version and entry_point: what a runtime asks before anything else.
#include "api/cuda/proc_address.hh"
#include "frontend/cuda/coredump/coredump_environment.hh"
#include "frontend/cuda/ends.hh"
#include "frontend/cuda/injection.hh"
#include "frontend/cuda/tables/export_tables.hh"
#include "frontend/process.hh"

namespace outboard::frontend::cuda {
namespace {

/// The version that names are resolved at: the server's, or (no server) our own headers'.
int driver_version() {
  process& p = process::instance();
  return p.connect() == CUDA_SUCCESS ? p.facts().driver_version : CUDA_VERSION;
}

}  // namespace

CUresult ends::cuInit(unsigned Flags) {
  if (Flags != 0) return CUDA_ERROR_INVALID_VALUE;
  const CUresult code = process::instance().init();
  if (code != CUDA_SUCCESS) return code;
  take_coredump_environment();
  load_injected_tool();
  return code;
}

CUresult ends::cuDriverGetVersion(int* driverVersion) {
  if (!driverVersion) return CUDA_ERROR_INVALID_VALUE;
  *driverVersion = driver_version();
  return CUDA_SUCCESS;
}

CUresult ends::cuGetProcAddress_v2(const char* symbol, void** pfn, int cudaVersion, cuuint64_t flags,
                                   CUdriverProcAddressQueryResult* symbolStatus) {
  if (!symbol || !pfn) return CUDA_ERROR_INVALID_VALUE;
  const api::proc_answer answer = api::resolve(symbol, cudaVersion, flags, driver_version());
  if (answer.result == CUDA_SUCCESS) {
    *pfn = answer.symbol.empty() ? nullptr : process::instance().find_export(answer.symbol);
  }
  if (symbolStatus && answer.status) *symbolStatus = *answer.status;
  return answer.result;
}

/// The first form has no status: a name without symbol is an error (read off a 580 driver).
CUresult ends::cuGetProcAddress(const char* symbol, void** pfn, int cudaVersion, cuuint64_t flags) {
  if (!symbol || !pfn) return CUDA_ERROR_INVALID_VALUE;
  const api::proc_answer answer = api::resolve(symbol, cudaVersion, flags, driver_version());
  if (answer.result != CUDA_SUCCESS) return answer.result;
  if (answer.symbol.empty()) return CUDA_ERROR_NOT_FOUND;
  *pfn = process::instance().find_export(answer.symbol);
  return CUDA_SUCCESS;
}

CUresult ends::cuGetExportTable(const void** ppExportTable, const CUuuid* pExportTableId) {
  if (!ppExportTable || !pExportTableId) return CUDA_ERROR_INVALID_VALUE;
  return get_export_table(ppExportTable, pExportTableId);
}

}  // namespace outboard::frontend::cuda
