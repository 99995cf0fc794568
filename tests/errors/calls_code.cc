// Wrong calls of the chapters modules, libraries and kernels, linker, function attributes.
#include "world.hh"

namespace wrong_calls {

namespace {

const char* const not_ptx = "this is no module at all, only text";
const char* const future_ptx =
    ".version 99.0\n.target sm_75\n.address_size 64\n.visible .entry k() { ret; }\n";
const char* const future_target =
    ".version 8.0\n.target sm_999\n.address_size 64\n.visible .entry k() { ret; }\n";
const char* const broken_ptx =
    ".version 7.0\n.target sm_75\n.address_size 64\n.visible .entry k() { frob; ret; }\n";
const char* const unresolved_ptx =
    ".version 7.0\n.target sm_75\n.address_size 64\n.extern .func nobody();\n.visible .entry k() { call "
    "nobody; "
    "ret; }\n";

CUlinkState linker() {
  CUlinkState state = nullptr;
  NEED(cuLinkCreate(0, nullptr, nullptr, &state));
  return state;
}

CUresult add_text(CUlinkState state, const char* text, const char* name = "text") {
  return cuLinkAddData(state, CU_JIT_INPUT_PTX, const_cast<char*>(text), std::strlen(text) + 1, name, 0,
                       nullptr, nullptr);
}

}  // namespace

calls module_calls() {
  return {
      WRONG("cuModuleLoad.no_file", in_context, cuModuleLoad(&o.module, "/no/such/file.ptx")),
      WRONG("cuModuleLoad.folder", in_context, cuModuleLoad(&o.module, "/tmp")),
      WRONG("cuModuleLoad.not_code", in_context, cuModuleLoad(&o.module, "/etc/passwd")),
      WRONG("cuModuleLoad.null_output", in_context, cuModuleLoad(nullptr, "/no/such/file.ptx")),
      WRONG("cuModuleLoad.null_name", in_context, cuModuleLoad(&o.module, nullptr)),
      WRONG("cuModuleLoad.empty_name", in_context, cuModuleLoad(&o.module, "")),
      WRONG("cuModuleLoad.none", no_context, cuModuleLoad(&o.module, "/no/such/file.ptx")),
      WRONG("cuModuleLoadData.null_output", in_context, cuModuleLoadData(nullptr, text_of_module)),
      WRONG("cuModuleLoadData.null_image", in_context, cuModuleLoadData(&o.module, nullptr)),
      WRONG("cuModuleLoadData.empty", in_context, cuModuleLoadData(&o.module, "")),
      WRONG("cuModuleLoadData.not_ptx", in_context, cuModuleLoadData(&o.module, not_ptx)),
      WRONG("cuModuleLoadData.future_version", in_context, cuModuleLoadData(&o.module, future_ptx)),
      WRONG("cuModuleLoadData.future_target", in_context, cuModuleLoadData(&o.module, future_target)),
      WRONG("cuModuleLoadData.broken", in_context, cuModuleLoadData(&o.module, broken_ptx)),
      WRONG("cuModuleLoadData.unresolved", in_context, cuModuleLoadData(&o.module, unresolved_ptx)),
      WRONG("cuModuleLoadData.bad_elf", in_context,
            cuModuleLoadData(&o.module, "\177ELF\2\1\1 and no more of it")),
      WRONG("cuModuleLoadData.none", no_context, cuModuleLoadData(&o.module, text_of_module)),
      WRONG("cuModuleLoadDataEx.null_options", in_context,
            cuModuleLoadDataEx(&o.module, text_of_module, 1, nullptr, nullptr)),
      WRONG_DO("cuModuleLoadDataEx.unknown_option", in_context,
               {
                 CUjit_option option = static_cast<CUjit_option>(999);
                 void* value = nullptr;
                 return cuModuleLoadDataEx(&o.module, text_of_module, 1, &option, &value);
               }),
      WRONG_DO("cuModuleLoadDataEx.level", in_context,
               {
                 CUjit_option option = CU_JIT_OPTIMIZATION_LEVEL;
                 void* value = reinterpret_cast<void*>(9);
                 return cuModuleLoadDataEx(&o.module, text_of_module, 1, &option, &value);
               }),
      WRONG_DO("cuModuleLoadDataEx.two_targets", in_context,
               {
                 CUjit_option options[] = {CU_JIT_TARGET, CU_JIT_TARGET_FROM_CUCONTEXT};
                 void* values[] = {reinterpret_cast<void*>(75), nullptr};
                 return cuModuleLoadDataEx(&o.module, text_of_module, 2, options, values);
               }),
      WRONG_DO("cuModuleLoadDataEx.target", in_context,
               {
                 CUjit_option option = CU_JIT_TARGET;
                 void* value = reinterpret_cast<void*>(7);
                 return cuModuleLoadDataEx(&o.module, text_of_module, 1, &option, &value);
               }),
      WRONG_DO("cuModuleLoadDataEx.broken_with_log", in_context,
               {
                 CUjit_option options[] = {CU_JIT_ERROR_LOG_BUFFER, CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES};
                 void* values[] = {o.text, reinterpret_cast<void*>(sizeof o.text)};
                 return cuModuleLoadDataEx(&o.module, broken_ptx, 2, options, values);
               }),
      WRONG("cuModuleLoadFatBinary.null", in_context, cuModuleLoadFatBinary(&o.module, nullptr)),
      WRONG("cuModuleLoadFatBinary.null_output", in_context, cuModuleLoadFatBinary(nullptr, text_of_module)),
      WRONG("cuModuleLoadFatBinary.not_fat", in_context, cuModuleLoadFatBinary(&o.module, not_ptx)),
      WRONG("cuModuleUnload.null", in_context, cuModuleUnload(nullptr)),
      WRONG_DO("cuModuleUnload.twice", alone,
               {
                 NEED(cuModuleLoadData(&o.module, text_of_module));
                 NEED(cuModuleUnload(o.module));
                 return cuModuleUnload(o.module);
               }),
      WRONG("cuModuleGetLoadingMode.null", in_context, cuModuleGetLoadingMode(nullptr)),
      WRONG("cuModuleGetFunction.null_output", in_context, cuModuleGetFunction(nullptr, w.module, "store")),
      WRONG("cuModuleGetFunction.null_module", in_context,
            cuModuleGetFunction(&o.function, nullptr, "store")),
      WRONG("cuModuleGetFunction.null_name", in_context, cuModuleGetFunction(&o.function, w.module, nullptr)),
      WRONG("cuModuleGetFunction.no_such", in_context, cuModuleGetFunction(&o.function, w.module, "nobody")),
      WRONG("cuModuleGetFunction.empty_name", in_context, cuModuleGetFunction(&o.function, w.module, "")),
      WRONG("cuModuleGetFunction.variable", in_context, cuModuleGetFunction(&o.function, w.module, "number")),
      WRONG_DO("cuModuleGetFunction.unloaded", alone,
               {
                 NEED(cuModuleLoadData(&o.module, text_of_module));
                 NEED(cuModuleUnload(o.module));
                 return cuModuleGetFunction(&o.function, o.module, "store");
               }),
      WRONG("cuModuleGetFunctionCount.null", in_context, cuModuleGetFunctionCount(nullptr, w.module)),
      WRONG("cuModuleGetFunctionCount.null_module", in_context, cuModuleGetFunctionCount(&o.u, nullptr)),
      WRONG("cuModuleEnumerateFunctions.null", in_context, cuModuleEnumerateFunctions(nullptr, 2, w.module)),
      WRONG("cuModuleEnumerateFunctions.none", in_context,
            cuModuleEnumerateFunctions(&o.function, 0, w.module)),
      WRONG_DO("cuModuleEnumerateFunctions.too_many", in_context,
               {
                 CUfunction all[64];
                 return cuModuleEnumerateFunctions(all, 64, w.module);
               }),
      WRONG("cuModuleGetGlobal.no_such", in_context, cuModuleGetGlobal(&o.d, &o.n, w.module, "nobody")),
      WRONG("cuModuleGetGlobal.kernel", in_context, cuModuleGetGlobal(&o.d, &o.n, w.module, "store")),
      WRONG("cuModuleGetGlobal.nulls", in_context, cuModuleGetGlobal(nullptr, nullptr, w.module, "number")),
      WRONG("cuModuleGetGlobal.null_name", in_context, cuModuleGetGlobal(&o.d, &o.n, w.module, nullptr)),
      WRONG("cuModuleGetGlobal.null_module", in_context, cuModuleGetGlobal(&o.d, &o.n, nullptr, "number")),
      WRONG("cuModuleGetTexRef.no_such", in_context,
            [] {
              CUtexref r;
              return cuModuleGetTexRef(&r, w.module, "nobody");
            }()),
      WRONG("cuModuleGetSurfRef.no_such", in_context,
            [] {
              CUsurfref r;
              return cuModuleGetSurfRef(&r, w.module, "nobody");
            }()),
      // function attributes
      WRONG("cuFuncGetAttribute.null", in_context,
            cuFuncGetAttribute(nullptr, CU_FUNC_ATTRIBUTE_NUM_REGS, w.function)),
      WRONG("cuFuncGetAttribute.unknown", in_context,
            cuFuncGetAttribute(&o.i, static_cast<CUfunction_attribute>(99), w.function)),
      WRONG("cuFuncGetAttribute.negative", in_context,
            cuFuncGetAttribute(&o.i, static_cast<CUfunction_attribute>(-1), w.function)),
      WRONG("cuFuncGetAttribute.null_function", in_context,
            cuFuncGetAttribute(&o.i, CU_FUNC_ATTRIBUTE_NUM_REGS, nullptr)),
      WRONG("cuFuncSetAttribute.read_only", in_context,
            cuFuncSetAttribute(w.function, CU_FUNC_ATTRIBUTE_NUM_REGS, 8)),
      WRONG("cuFuncSetAttribute.unknown", in_context,
            cuFuncSetAttribute(w.function, static_cast<CUfunction_attribute>(99), 1)),
      WRONG("cuFuncSetAttribute.shared_huge", in_context,
            cuFuncSetAttribute(w.function, CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, 1 << 24)),
      WRONG("cuFuncSetAttribute.shared_negative", in_context,
            cuFuncSetAttribute(w.function, CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, -1)),
      WRONG("cuFuncSetAttribute.shared_with_static", in_context,
            cuFuncSetAttribute(function_named("much"), CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES,
                               220 << 10)),
      WRONG("cuFuncSetAttribute.carveout", in_context,
            cuFuncSetAttribute(w.function, CU_FUNC_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT, 101)),
      WRONG("cuFuncSetAttribute.carveout_negative", in_context,
            cuFuncSetAttribute(w.function, CU_FUNC_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT, -2)),
      WRONG("cuFuncSetAttribute.cluster_width", in_context,
            cuFuncSetAttribute(w.function, CU_FUNC_ATTRIBUTE_REQUIRED_CLUSTER_WIDTH, -1)),
      WRONG("cuFuncSetAttribute.null_function", in_context,
            cuFuncSetAttribute(nullptr, CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, 0)),
      WRONG("cuFuncSetCacheConfig.unknown", in_context,
            cuFuncSetCacheConfig(w.function, static_cast<CUfunc_cache>(17))),
      WRONG("cuFuncSetCacheConfig.null", in_context, cuFuncSetCacheConfig(nullptr, CU_FUNC_CACHE_PREFER_L1)),
      WRONG("cuFuncSetSharedMemConfig.unknown", in_context,
            cuFuncSetSharedMemConfig(w.function, static_cast<CUsharedconfig>(17))),
      WRONG("cuFuncGetModule.null", in_context, cuFuncGetModule(nullptr, w.function)),
      WRONG("cuFuncGetModule.null_function", in_context, cuFuncGetModule(&o.module, nullptr)),
      WRONG("cuFuncGetName.null", in_context, cuFuncGetName(nullptr, w.function)),
      WRONG("cuFuncGetName.null_function", in_context, cuFuncGetName(&o.name, nullptr)),
      WRONG("cuFuncGetParamInfo.index", in_context, cuFuncGetParamInfo(w.function, 2, &o.n, &o.n2)),
      WRONG("cuFuncGetParamInfo.index_huge", in_context,
            cuFuncGetParamInfo(w.function, ~std::size_t{0}, &o.n, &o.n2)),
      WRONG("cuFuncGetParamInfo.null", in_context, cuFuncGetParamInfo(w.function, 0, nullptr, nullptr)),
      WRONG("cuFuncGetParamInfo.null_function", in_context, cuFuncGetParamInfo(nullptr, 0, &o.n, &o.n2)),
      WRONG("cuFuncIsLoaded.null", in_context, cuFuncIsLoaded(nullptr, w.function)),
      WRONG("cuFuncLoad.null", in_context, cuFuncLoad(nullptr)),
  };
}

calls library_calls() {
  return {
      WRONG("cuLibraryLoadData.null_output", in_context,
            cuLibraryLoadData(nullptr, text_of_module, nullptr, nullptr, 0, nullptr, nullptr, 0)),
      WRONG("cuLibraryLoadData.null_code", in_context,
            cuLibraryLoadData(&o.library, nullptr, nullptr, nullptr, 0, nullptr, nullptr, 0)),
      WRONG("cuLibraryLoadData.not_ptx", in_context,
            cuLibraryLoadData(&o.library, not_ptx, nullptr, nullptr, 0, nullptr, nullptr, 0)),
      WRONG("cuLibraryLoadData.broken", in_context,
            cuLibraryLoadData(&o.library, broken_ptx, nullptr, nullptr, 0, nullptr, nullptr, 0)),
      WRONG("cuLibraryLoadData.future_version", in_context,
            cuLibraryLoadData(&o.library, future_ptx, nullptr, nullptr, 0, nullptr, nullptr, 0)),
      WRONG_DO("cuLibraryLoadData.broken_then_kernel", in_context,
               {
                 NEED(cuLibraryLoadData(&o.library, broken_ptx, nullptr, nullptr, 0, nullptr, nullptr, 0));
                 return cuLibraryGetKernel(&o.kernel, o.library, "k");
               }),
      WRONG("cuLibraryLoadData.null_options", in_context,
            cuLibraryLoadData(&o.library, text_of_module, nullptr, nullptr, 1, nullptr, nullptr, 0)),
      WRONG("cuLibraryLoadData.null_library_options", in_context,
            cuLibraryLoadData(&o.library, text_of_module, nullptr, nullptr, 0, nullptr, nullptr, 1)),
      WRONG_DO("cuLibraryLoadData.unknown_library_option", in_context,
               {
                 CUlibraryOption option = static_cast<CUlibraryOption>(99);
                 void* value = nullptr;
                 return cuLibraryLoadData(&o.library, text_of_module, nullptr, nullptr, 0, &option, &value,
                                          1);
               }),
      WRONG("cuLibraryLoadFromFile.no_file", in_context,
            cuLibraryLoadFromFile(&o.library, "/no/such/file", nullptr, nullptr, 0, nullptr, nullptr, 0)),
      WRONG("cuLibraryLoadFromFile.null_name", in_context,
            cuLibraryLoadFromFile(&o.library, nullptr, nullptr, nullptr, 0, nullptr, nullptr, 0)),
      WRONG("cuLibraryLoadFromFile.folder", in_context,
            cuLibraryLoadFromFile(&o.library, "/tmp", nullptr, nullptr, 0, nullptr, nullptr, 0)),
      WRONG("cuLibraryUnload.null", in_context, cuLibraryUnload(nullptr)),
      WRONG_DO("cuLibraryUnload.twice", alone,
               {
                 NEED(
                     cuLibraryLoadData(&o.library, text_of_module, nullptr, nullptr, 0, nullptr, nullptr, 0));
                 NEED(cuLibraryUnload(o.library));
                 return cuLibraryUnload(o.library);
               }),
      WRONG("cuLibraryGetKernel.null_output", in_context, cuLibraryGetKernel(nullptr, w.library, "store")),
      WRONG("cuLibraryGetKernel.null_library", in_context, cuLibraryGetKernel(&o.kernel, nullptr, "store")),
      WRONG("cuLibraryGetKernel.null_name", in_context, cuLibraryGetKernel(&o.kernel, w.library, nullptr)),
      WRONG("cuLibraryGetKernel.no_such", in_context, cuLibraryGetKernel(&o.kernel, w.library, "nobody")),
      WRONG("cuLibraryGetKernelCount.null", in_context, cuLibraryGetKernelCount(nullptr, w.library)),
      WRONG("cuLibraryGetKernelCount.null_library", in_context, cuLibraryGetKernelCount(&o.u, nullptr)),
      WRONG("cuLibraryEnumerateKernels.null", in_context, cuLibraryEnumerateKernels(nullptr, 2, w.library)),
      WRONG("cuLibraryEnumerateKernels.null_library", in_context,
            cuLibraryEnumerateKernels(&o.kernel, 1, nullptr)),
      WRONG("cuLibraryGetModule.null", in_context, cuLibraryGetModule(nullptr, w.library)),
      WRONG("cuLibraryGetModule.null_library", in_context, cuLibraryGetModule(&o.module, nullptr)),
      WRONG("cuLibraryGetModule.none", no_context, cuLibraryGetModule(&o.module, w.library)),
      WRONG("cuLibraryGetGlobal.no_such", in_context, cuLibraryGetGlobal(&o.d, &o.n, w.library, "nobody")),
      WRONG("cuLibraryGetGlobal.null_library", in_context, cuLibraryGetGlobal(&o.d, &o.n, nullptr, "number")),
      WRONG("cuLibraryGetGlobal.null_name", in_context, cuLibraryGetGlobal(&o.d, &o.n, w.library, nullptr)),
      WRONG("cuLibraryGetGlobal.none", no_context, cuLibraryGetGlobal(&o.d, &o.n, w.library, "number")),
      WRONG("cuLibraryGetManaged.not_managed", in_context,
            cuLibraryGetManaged(&o.d, &o.n, w.library, "number")),
      WRONG("cuLibraryGetManaged.no_such", in_context, cuLibraryGetManaged(&o.d, &o.n, w.library, "nobody")),
      WRONG("cuLibraryGetUnifiedFunction.no_such", in_context,
            cuLibraryGetUnifiedFunction(&o.p, w.library, "nobody")),
      WRONG("cuLibraryGetUnifiedFunction.null_library", in_context,
            cuLibraryGetUnifiedFunction(&o.p, nullptr, "f")),
      WRONG("cuKernelGetFunction.null", in_context, cuKernelGetFunction(nullptr, w.kernel)),
      WRONG("cuKernelGetFunction.null_kernel", in_context, cuKernelGetFunction(&o.function, nullptr)),
      WRONG("cuKernelGetFunction.none", no_context, cuKernelGetFunction(&o.function, w.kernel)),
      WRONG("cuKernelGetLibrary.null", in_context, cuKernelGetLibrary(nullptr, w.kernel)),
      WRONG("cuKernelGetLibrary.null_kernel", in_context, cuKernelGetLibrary(&o.library, nullptr)),
      WRONG("cuKernelGetAttribute.null", in_context,
            cuKernelGetAttribute(nullptr, CU_FUNC_ATTRIBUTE_NUM_REGS, w.kernel, w.device)),
      WRONG("cuKernelGetAttribute.unknown", in_context,
            cuKernelGetAttribute(&o.i, static_cast<CUfunction_attribute>(99), w.kernel, w.device)),
      WRONG("cuKernelGetAttribute.device", in_context,
            cuKernelGetAttribute(&o.i, CU_FUNC_ATTRIBUTE_NUM_REGS, w.kernel, 99)),
      WRONG("cuKernelGetAttribute.null_kernel", in_context,
            cuKernelGetAttribute(&o.i, CU_FUNC_ATTRIBUTE_NUM_REGS, nullptr, w.device)),
      WRONG("cuKernelSetAttribute.read_only", in_context,
            cuKernelSetAttribute(CU_FUNC_ATTRIBUTE_NUM_REGS, 8, w.kernel, w.device)),
      WRONG(
          "cuKernelSetAttribute.shared_huge", in_context,
          cuKernelSetAttribute(CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, 1 << 24, w.kernel, w.device)),
      WRONG("cuKernelSetAttribute.device", in_context,
            cuKernelSetAttribute(CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, 1024, w.kernel, 99)),
      WRONG("cuKernelSetCacheConfig.unknown", in_context,
            cuKernelSetCacheConfig(w.kernel, static_cast<CUfunc_cache>(17), w.device)),
      WRONG("cuKernelSetCacheConfig.device", in_context,
            cuKernelSetCacheConfig(w.kernel, CU_FUNC_CACHE_PREFER_L1, 99)),
      WRONG("cuKernelGetName.null", in_context, cuKernelGetName(nullptr, w.kernel)),
      WRONG("cuKernelGetName.null_kernel", in_context, cuKernelGetName(&o.name, nullptr)),
      WRONG("cuKernelGetParamInfo.index", in_context, cuKernelGetParamInfo(w.kernel, 2, &o.n, &o.n2)),
      WRONG("cuKernelGetParamInfo.null", in_context, cuKernelGetParamInfo(w.kernel, 0, nullptr, nullptr)),
  };
}

calls link_calls() {
  return {
      WRONG("cuLinkCreate.null", in_context, cuLinkCreate(0, nullptr, nullptr, nullptr)),
      WRONG("cuLinkCreate.null_options", in_context, cuLinkCreate(1, nullptr, nullptr, &o.link)),
      WRONG("cuLinkCreate.none", no_context, cuLinkCreate(0, nullptr, nullptr, &o.link)),
      WRONG_DO("cuLinkCreate.unknown_option", in_context,
               {
                 CUjit_option option = static_cast<CUjit_option>(999);
                 void* value = nullptr;
                 return cuLinkCreate(1, &option, &value, &o.link);
               }),
      WRONG("cuLinkAddData.null_state", in_context, add_text(nullptr, text_of_module)),
      WRONG("cuLinkAddData.null_data", in_context,
            cuLinkAddData(linker(), CU_JIT_INPUT_PTX, nullptr, 100, "a", 0, nullptr, nullptr)),
      WRONG("cuLinkAddData.no_size", in_context,
            cuLinkAddData(linker(), CU_JIT_INPUT_PTX, const_cast<char*>(text_of_module), 0, "a", 0, nullptr,
                          nullptr)),
      WRONG("cuLinkAddData.type", in_context,
            cuLinkAddData(linker(), static_cast<CUjitInputType>(77), const_cast<char*>(text_of_module),
                          std::strlen(text_of_module) + 1, "a", 0, nullptr, nullptr)),
      WRONG("cuLinkAddData.not_ptx", in_context, add_text(linker(), not_ptx)),
      WRONG("cuLinkAddData.broken", in_context, add_text(linker(), broken_ptx)),
      WRONG("cuLinkAddData.future_version", in_context, add_text(linker(), future_ptx)),
      WRONG("cuLinkAddData.not_cubin", in_context,
            cuLinkAddData(linker(), CU_JIT_INPUT_CUBIN, const_cast<char*>(not_ptx), 20, "a", 0, nullptr,
                          nullptr)),
      WRONG("cuLinkAddFile.no_file", in_context,
            cuLinkAddFile(linker(), CU_JIT_INPUT_PTX, "/no/such/file.ptx", 0, nullptr, nullptr)),
      WRONG("cuLinkAddFile.null_name", in_context,
            cuLinkAddFile(linker(), CU_JIT_INPUT_PTX, nullptr, 0, nullptr, nullptr)),
      WRONG("cuLinkAddFile.null_state", in_context,
            cuLinkAddFile(nullptr, CU_JIT_INPUT_PTX, "/no/such/file.ptx", 0, nullptr, nullptr)),
      WRONG("cuLinkComplete.null_state", in_context, cuLinkComplete(nullptr, &o.p, &o.n)),
      WRONG("cuLinkComplete.null_output", in_context, cuLinkComplete(linker(), nullptr, &o.n)),
      WRONG("cuLinkComplete.nothing_added", in_context, cuLinkComplete(linker(), &o.p, &o.n)),
      WRONG_DO("cuLinkComplete.unresolved", in_context,
               {
                 CUlinkState state = linker();
                 NEED(add_text(state, unresolved_ptx));
                 return cuLinkComplete(state, &o.p, &o.n);
               }),
      WRONG_DO("cuLinkComplete.twice_defined", in_context,
               {
                 CUlinkState state = linker();
                 NEED(add_text(state, text_of_module, "a"));
                 const CUresult added = add_text(state, text_of_module, "b");
                 return added != CUDA_SUCCESS ? 10000 + added : cuLinkComplete(state, &o.p, &o.n);
               }),
      WRONG_DO("cuLinkComplete.twice", in_context,
               {
                 CUlinkState state = linker();
                 NEED(add_text(state, text_of_module));
                 NEED(cuLinkComplete(state, &o.p, &o.n));
                 return cuLinkComplete(state, &o.p, &o.n);
               }),
      WRONG_DO("cuLinkAddData.after_complete", in_context,
               {
                 CUlinkState state = linker();
                 NEED(add_text(state, text_of_module));
                 NEED(cuLinkComplete(state, &o.p, &o.n));
                 return add_text(state, text_of_module, "b");
               }),
      WRONG("cuLinkDestroy.null", in_context, cuLinkDestroy(nullptr)),
      WRONG_DO("cuLinkDestroy.twice", alone,
               {
                 CUlinkState state = linker();
                 NEED(cuLinkDestroy(state));
                 return cuLinkDestroy(state);
               }),
  };
}

}  // namespace wrong_calls
