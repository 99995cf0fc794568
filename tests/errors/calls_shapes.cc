// Wrong calls of the chapters memory (boxes, arrays), textures and surfaces.
#include "world.hh"

namespace wrong_calls {

namespace {

/// 16 rows of 64 bytes from `w.memory` to pageable memory.
CUDA_MEMCPY2D rows() {
  CUDA_MEMCPY2D c{};
  c.srcMemoryType = CU_MEMORYTYPE_DEVICE, c.srcDevice = w.memory, c.srcPitch = 256;
  c.dstMemoryType = CU_MEMORYTYPE_HOST, c.dstHost = host, c.dstPitch = 256;
  c.WidthInBytes = 64, c.Height = 16;
  return c;
}
CUDA_MEMCPY3D box() {
  CUDA_MEMCPY3D c{};
  c.srcMemoryType = CU_MEMORYTYPE_DEVICE, c.srcDevice = w.memory, c.srcPitch = 256, c.srcHeight = 16;
  c.dstMemoryType = CU_MEMORYTYPE_HOST, c.dstHost = host, c.dstPitch = 256, c.dstHeight = 16;
  c.WidthInBytes = 64, c.Height = 16, c.Depth = 2;
  return c;
}
CUDA_MEMCPY2D to_array() {
  CUDA_MEMCPY2D c = rows();
  c.dstMemoryType = CU_MEMORYTYPE_ARRAY, c.dstArray = w.array, c.dstHost = nullptr;
  return c;
}
CUDA_ARRAY_DESCRIPTOR plane(std::size_t width, std::size_t height) {
  CUDA_ARRAY_DESCRIPTOR a{};
  a.Width = width, a.Height = height, a.Format = CU_AD_FORMAT_FLOAT, a.NumChannels = 1;
  return a;
}
CUDA_ARRAY3D_DESCRIPTOR solid(std::size_t width, std::size_t height, std::size_t depth, unsigned flags = 0) {
  CUDA_ARRAY3D_DESCRIPTOR a{};
  a.Width = width, a.Height = height, a.Depth = depth, a.Format = CU_AD_FORMAT_FLOAT, a.NumChannels = 1;
  a.Flags = flags;
  return a;
}
CUresult create(CUDA_ARRAY_DESCRIPTOR a) { return cuArrayCreate(&o.array, &a); }
CUresult create(CUDA_ARRAY3D_DESCRIPTOR a) { return cuArray3DCreate(&o.array, &a); }
CUresult create_levels(CUDA_ARRAY3D_DESCRIPTOR a, unsigned levels) {
  return cuMipmappedArrayCreate(&o.mipmap, &a, levels);
}
CUarray gone() {
  NEED(create(plane(32, 32)));
  NEED(cuArrayDestroy(o.array));
  return o.array;
}
CUDA_RESOURCE_DESC array_resource() {
  CUDA_RESOURCE_DESC r{};
  r.resType = CU_RESOURCE_TYPE_ARRAY, r.res.array.hArray = w.array;
  return r;
}
CUDA_RESOURCE_DESC linear_resource() {
  CUDA_RESOURCE_DESC r{};
  r.resType = CU_RESOURCE_TYPE_LINEAR;
  r.res.linear.devPtr = w.memory, r.res.linear.format = CU_AD_FORMAT_FLOAT, r.res.linear.numChannels = 1;
  r.res.linear.sizeInBytes = 4096;
  return r;
}
CUDA_RESOURCE_DESC pitched_resource() {
  CUDA_RESOURCE_DESC r{};
  r.resType = CU_RESOURCE_TYPE_PITCH2D;
  r.res.pitch2D.devPtr = w.memory, r.res.pitch2D.format = CU_AD_FORMAT_FLOAT, r.res.pitch2D.numChannels = 1;
  r.res.pitch2D.width = 64, r.res.pitch2D.height = 16, r.res.pitch2D.pitchInBytes = 256;
  return r;
}
CUresult texture(CUDA_RESOURCE_DESC r, CUDA_TEXTURE_DESC t = {}) {
  return cuTexObjectCreate(&o.texture, &r, &t, nullptr);
}
CUresult surface(CUDA_RESOURCE_DESC r) { return cuSurfObjectCreate(&o.surface, &r); }

template <class Change>
CUresult copy_rows(Change change) {
  CUDA_MEMCPY2D c = rows();
  change(c);
  return cuMemcpy2D(&c);
}
template <class Change>
CUresult copy_box(Change change) {
  CUDA_MEMCPY3D c = box();
  change(c);
  return cuMemcpy3D(&c);
}
template <class Change>
CUresult copy_to_array(Change change) {
  CUDA_MEMCPY2D c = to_array();
  change(c);
  return cuMemcpy2D(&c);
}
template <class Change>
CUresult changed(CUDA_RESOURCE_DESC r, Change change) {
  change(r);
  return texture(r);
}
template <class Change>
CUresult sampled(CUDA_RESOURCE_DESC r, Change change) {
  CUDA_TEXTURE_DESC t{};
  change(t);
  return texture(r, t);
}

}  // namespace

calls shaped_copy_calls() {
  return {
      WRONG("cuMemcpy2D.null", in_context, cuMemcpy2D(nullptr)),
      WRONG("cuMemcpy2D.pitch", in_context, copy_rows([](auto& c) { c.srcPitch = 32; })),
      WRONG("cuMemcpy2D.target_pitch", in_context, copy_rows([](auto& c) { c.dstPitch = 32; })),
      WRONG("cuMemcpy2D.pitch_huge", in_context,
            copy_rows([](auto& c) { c.srcPitch = std::size_t{1} << 40; })),
      WRONG("cuMemcpy2D.null_source", in_context, copy_rows([](auto& c) { c.srcDevice = 0; })),
      WRONG("cuMemcpy2D.null_target", in_context, copy_rows([](auto& c) { c.dstHost = nullptr; })),
      WRONG("cuMemcpy2D.source_type", in_context,
            copy_rows([](auto& c) { c.srcMemoryType = static_cast<CUmemorytype>(9); })),
      WRONG("cuMemcpy2D.source_type_zero", in_context,
            copy_rows([](auto& c) { c.srcMemoryType = static_cast<CUmemorytype>(0); })),
      WRONG("cuMemcpy2D.over_the_end", in_context, copy_rows([](auto& c) { c.srcPitch = 1 << 20; })),
      WRONG("cuMemcpy2D.no_width", in_context,
            copy_rows([](auto& c) { c.WidthInBytes = 0, c.srcDevice = 0; })),
      WRONG("cuMemcpy2D.no_height", in_context, copy_rows([](auto& c) { c.Height = 0, c.srcDevice = 0; })),
      WRONG("cuMemcpy2D.null_array", in_context, copy_to_array([](auto& c) { c.dstArray = nullptr; })),
      WRONG("cuMemcpy2D.array_width", in_context,
            copy_to_array([](auto& c) { c.WidthInBytes = 1024, c.srcPitch = 1024; })),
      WRONG("cuMemcpy2D.array_height", in_context, copy_to_array([](auto& c) { c.Height = 65; })),
      WRONG("cuMemcpy2D.array_offset", in_context, copy_to_array([](auto& c) { c.dstXInBytes = 224; })),
      WRONG("cuMemcpy2D.array_unaligned", in_context, copy_to_array([](auto& c) { c.dstXInBytes = 2; })),
      WRONG("cuMemcpy2D.array_part_of_element", in_context,
            copy_to_array([](auto& c) { c.WidthInBytes = 62; })),
      WRONG("cuMemcpy2D.array_y", in_context, copy_to_array([](auto& c) { c.dstY = 60; })),
      WRONG("cuMemcpy2D.array_gone", alone, copy_to_array([](auto& c) { c.dstArray = gone(); })),
      WRONG("cuMemcpy2D.none", no_context, copy_rows([](auto&) {})),
      WRONG("cuMemcpy2DUnaligned.null", in_context, cuMemcpy2DUnaligned(nullptr)),
      WRONG("cuMemcpy2DAsync.null", in_context, cuMemcpy2DAsync(nullptr, w.stream)),
      WRONG_DO("cuMemcpy2DAsync.pitch", in_context,
               {
                 CUDA_MEMCPY2D c = rows();
                 c.dstPitch = 10;
                 return cuMemcpy2DAsync(&c, w.stream);
               }),
      WRONG("cuMemcpy3D.null", in_context, cuMemcpy3D(nullptr)),
      WRONG("cuMemcpy3D.pitch", in_context, copy_box([](auto& c) { c.srcPitch = 32; })),
      WRONG("cuMemcpy3D.height", in_context, copy_box([](auto& c) { c.srcHeight = 4; })),
      WRONG("cuMemcpy3D.null_source", in_context, copy_box([](auto& c) { c.srcDevice = 0; })),
      WRONG("cuMemcpy3D.level", in_context, copy_box([](auto& c) { c.srcLOD = 1; })),
      WRONG("cuMemcpy3D.source_type", in_context,
            copy_box([](auto& c) { c.srcMemoryType = static_cast<CUmemorytype>(9); })),
      WRONG("cuMemcpy3D.no_depth", in_context, copy_box([](auto& c) { c.Depth = 0; })),
      WRONG("cuMemcpy3D.over_the_end", in_context, copy_box([](auto& c) { c.srcHeight = 1 << 14; })),
      WRONG("cuMemcpy3D.reserved", in_context, copy_box([](auto& c) { c.reserved0 = host; })),
      WRONG("cuMemcpy3DAsync.null", in_context, cuMemcpy3DAsync(nullptr, w.stream)),
      WRONG("cuMemcpy3DPeer.null", in_context, cuMemcpy3DPeer(nullptr)),
      WRONG("cuMemcpyHtoA.null", in_context, cuMemcpyHtoA(nullptr, 0, host, 64)),
      WRONG("cuMemcpyHtoA.over_the_end", in_context, cuMemcpyHtoA(w.array, 0, host, 65536)),
      WRONG("cuMemcpyHtoA.unaligned", in_context, cuMemcpyHtoA(w.array, 2, host, 64)),
      WRONG("cuMemcpyAtoH.null", in_context, cuMemcpyAtoH(host, nullptr, 0, 64)),
      WRONG("cuMemcpyAtoH.null_host", in_context, cuMemcpyAtoH(nullptr, w.array, 0, 64)),
      WRONG("cuMemcpyAtoH.over_the_end", in_context, cuMemcpyAtoH(host, w.array, 16380, 64)),
      WRONG("cuMemcpyDtoA.nowhere", in_context, cuMemcpyDtoA(w.array, 0, 0x6'0000'0000'0000ull, 64)),
      WRONG("cuMemcpyAtoD.null", in_context, cuMemcpyAtoD(0, w.array, 0, 64)),
      WRONG("cuMemcpyAtoA.null", in_context, cuMemcpyAtoA(w.array, 0, nullptr, 0, 64)),
      WRONG("cuMemcpyAtoA.over_the_end", in_context, cuMemcpyAtoA(w.array, 16380, w.array, 0, 64)),
  };
}

calls array_calls() {
  return {
      WRONG("cuArrayCreate.null", in_context,
            [] {
              auto a = plane(8, 8);
              return cuArrayCreate(nullptr, &a);
            }()),
      WRONG("cuArrayCreate.null_description", in_context, cuArrayCreate(&o.array, nullptr)),
      WRONG("cuArrayCreate.no_width", in_context, create(plane(0, 8))),
      WRONG("cuArrayCreate.huge", in_context, create(plane(1 << 20, 8))),
      WRONG("cuArrayCreate.tall", in_context, create(plane(8, 1 << 20))),
      WRONG("cuArrayCreate.format", in_context,
            [] {
              auto a = plane(8, 8);
              a.Format = static_cast<CUarray_format>(0x77);
              return create(a);
            }()),
      WRONG("cuArrayCreate.format_zero", in_context,
            [] {
              auto a = plane(8, 8);
              a.Format = static_cast<CUarray_format>(0);
              return create(a);
            }()),
      WRONG("cuArrayCreate.channels", in_context,
            [] {
              auto a = plane(8, 8);
              a.NumChannels = 3;
              return create(a);
            }()),
      WRONG("cuArrayCreate.no_channels", in_context,
            [] {
              auto a = plane(8, 8);
              a.NumChannels = 0;
              return create(a);
            }()),
      WRONG("cuArrayCreate.none", no_context, create(plane(8, 8))),
      WRONG("cuArray3DCreate.null_description", in_context, cuArray3DCreate(&o.array, nullptr)),
      WRONG("cuArray3DCreate.no_width", in_context, create(solid(0, 8, 8))),
      WRONG("cuArray3DCreate.deep", in_context, create(solid(8, 8, 1 << 16))),
      WRONG("cuArray3DCreate.depth_without_height", in_context, create(solid(8, 0, 8))),
      WRONG("cuArray3DCreate.flags", in_context, create(solid(8, 8, 8, 0x4000))),
      WRONG("cuArray3DCreate.layers", in_context, create(solid(8, 8, 4096, CUDA_ARRAY3D_LAYERED))),
      WRONG("cuArray3DCreate.cube_not_square", in_context, create(solid(8, 16, 6, CUDA_ARRAY3D_CUBEMAP))),
      WRONG("cuArray3DCreate.cube_depth", in_context, create(solid(8, 8, 5, CUDA_ARRAY3D_CUBEMAP))),
      WRONG("cuArray3DCreate.cube_layers", in_context,
            create(solid(8, 8, 7, CUDA_ARRAY3D_CUBEMAP | CUDA_ARRAY3D_LAYERED))),
      WRONG("cuArray3DCreate.gather_1d", in_context, create(solid(8, 0, 0, CUDA_ARRAY3D_TEXTURE_GATHER))),
      WRONG("cuArray3DCreate.gather_3d", in_context, create(solid(8, 8, 8, CUDA_ARRAY3D_TEXTURE_GATHER))),
      WRONG("cuArrayDestroy.null", in_context, cuArrayDestroy(nullptr)),
      WRONG("cuArrayDestroy.twice", alone, cuArrayDestroy(gone())),
      WRONG("cuArrayGetDescriptor.null", in_context, cuArrayGetDescriptor(nullptr, w.array)),
      WRONG("cuArrayGetDescriptor.null_array", in_context,
            [] {
              CUDA_ARRAY_DESCRIPTOR a;
              return cuArrayGetDescriptor(&a, nullptr);
            }()),
      WRONG("cuArray3DGetDescriptor.null_array", in_context,
            [] {
              CUDA_ARRAY3D_DESCRIPTOR a;
              return cuArray3DGetDescriptor(&a, nullptr);
            }()),
      WRONG("cuArray3DGetDescriptor.null", in_context, cuArray3DGetDescriptor(nullptr, w.array)),
      WRONG("cuArrayGetSparseProperties.not_sparse", in_context,
            [] {
              CUDA_ARRAY_SPARSE_PROPERTIES s;
              return cuArrayGetSparseProperties(&s, w.array);
            }()),
      WRONG("cuArrayGetSparseProperties.null", in_context, cuArrayGetSparseProperties(nullptr, w.array)),
      WRONG("cuArrayGetMemoryRequirements.not_deferred", in_context,
            [] {
              CUDA_ARRAY_MEMORY_REQUIREMENTS m;
              return cuArrayGetMemoryRequirements(&m, w.array, w.device);
            }()),
      WRONG("cuArrayGetMemoryRequirements.device", in_context,
            [] {
              CUDA_ARRAY_MEMORY_REQUIREMENTS m;
              return cuArrayGetMemoryRequirements(&m, w.array, 99);
            }()),
      WRONG("cuArrayGetPlane.not_planar", in_context, cuArrayGetPlane(&o.array, w.array, 0)),
      WRONG("cuArrayGetPlane.index", in_context, cuArrayGetPlane(&o.array, w.array, 7)),
      WRONG("cuArrayGetPlane.null", in_context, cuArrayGetPlane(nullptr, w.array, 0)),
      WRONG("cuMipmappedArrayCreate.null", in_context, cuMipmappedArrayCreate(&o.mipmap, nullptr, 2)),
      WRONG("cuMipmappedArrayCreate.no_levels", in_context, create_levels(solid(64, 64, 0), 0)),
      WRONG("cuMipmappedArrayCreate.too_many_levels", in_context, create_levels(solid(64, 64, 0), 20)),
      WRONG("cuMipmappedArrayCreate.no_width", in_context, create_levels(solid(0, 0, 0), 1)),
      WRONG_DO("cuMipmappedArrayGetLevel.too_high", in_context,
               {
                 NEED(create_levels(solid(64, 64, 0), 3));
                 return cuMipmappedArrayGetLevel(&o.array, o.mipmap, 3);
               }),
      WRONG("cuMipmappedArrayGetLevel.null", in_context, cuMipmappedArrayGetLevel(&o.array, nullptr, 0)),
      WRONG_DO("cuMipmappedArrayGetLevel.null_output", in_context,
               {
                 NEED(create_levels(solid(64, 64, 0), 3));
                 return cuMipmappedArrayGetLevel(nullptr, o.mipmap, 0);
               }),
      WRONG("cuMipmappedArrayDestroy.null", in_context, cuMipmappedArrayDestroy(nullptr)),
      WRONG_DO("cuMipmappedArrayDestroy.twice", alone,
               {
                 NEED(create_levels(solid(64, 64, 0), 3));
                 NEED(cuMipmappedArrayDestroy(o.mipmap));
                 return cuMipmappedArrayDestroy(o.mipmap);
               }),
      WRONG_DO("cuArrayDestroy.level", alone,
               {
                 NEED(create_levels(solid(64, 64, 0), 3));
                 NEED(cuMipmappedArrayGetLevel(&o.array, o.mipmap, 0));
                 return cuArrayDestroy(o.array);
               }),
  };
}

calls texture_calls() {
  return {
      WRONG("cuTexObjectCreate.null", in_context,
            [] {
              auto r = array_resource();
              CUDA_TEXTURE_DESC t{};
              return cuTexObjectCreate(nullptr, &r, &t, nullptr);
            }()),
      WRONG("cuTexObjectCreate.null_resource", in_context,
            [] {
              CUDA_TEXTURE_DESC t{};
              return cuTexObjectCreate(&o.texture, nullptr, &t, nullptr);
            }()),
      WRONG("cuTexObjectCreate.null_texture", in_context,
            [] {
              auto r = array_resource();
              return cuTexObjectCreate(&o.texture, &r, nullptr, nullptr);
            }()),
      WRONG("cuTexObjectCreate.type", in_context,
            changed(array_resource(), [](auto& r) { r.resType = static_cast<CUresourcetype>(9); })),
      WRONG("cuTexObjectCreate.null_array", in_context,
            changed(array_resource(), [](auto& r) { r.res.array.hArray = nullptr; })),
      WRONG("cuTexObjectCreate.array_gone", alone,
            changed(array_resource(), [](auto& r) { r.res.array.hArray = gone(); })),
      WRONG("cuTexObjectCreate.resource_flags", in_context,
            changed(array_resource(), [](auto& r) { r.flags = 1; })),
      WRONG("cuTexObjectCreate.linear_null", in_context,
            changed(linear_resource(), [](auto& r) { r.res.linear.devPtr = 0; })),
      WRONG("cuTexObjectCreate.linear_nowhere", in_context,
            changed(linear_resource(), [](auto& r) { r.res.linear.devPtr = 0x6'0000'0000'0000ull; })),
      WRONG("cuTexObjectCreate.linear_unaligned", in_context,
            changed(linear_resource(), [](auto& r) { r.res.linear.devPtr += 4; })),
      WRONG("cuTexObjectCreate.linear_channels", in_context,
            changed(linear_resource(), [](auto& r) { r.res.linear.numChannels = 3; })),
      WRONG("cuTexObjectCreate.linear_format", in_context,
            changed(linear_resource(),
                    [](auto& r) { r.res.linear.format = static_cast<CUarray_format>(0x77); })),
      WRONG("cuTexObjectCreate.linear_nothing", in_context,
            changed(linear_resource(), [](auto& r) { r.res.linear.sizeInBytes = 0; })),
      WRONG("cuTexObjectCreate.linear_huge", in_context,
            changed(linear_resource(), [](auto& r) { r.res.linear.sizeInBytes = std::size_t{1} << 40; })),
      WRONG("cuTexObjectCreate.linear_over_the_end", in_context,
            changed(linear_resource(), [](auto& r) { r.res.linear.sizeInBytes = 64 << 20; })),
      WRONG("cuTexObjectCreate.pitched_pitch", in_context,
            changed(pitched_resource(), [](auto& r) { r.res.pitch2D.pitchInBytes = 100; })),
      WRONG("cuTexObjectCreate.pitched_pitch_odd", in_context,
            changed(pitched_resource(), [](auto& r) { r.res.pitch2D.pitchInBytes = 260; })),
      WRONG("cuTexObjectCreate.pitched_unaligned", in_context,
            changed(pitched_resource(), [](auto& r) { r.res.pitch2D.devPtr += 16; })),
      WRONG("cuTexObjectCreate.pitched_wide", in_context,
            changed(pitched_resource(),
                    [](auto& r) { r.res.pitch2D.width = 1 << 20, r.res.pitch2D.pitchInBytes = 4 << 20; })),
      WRONG("cuTexObjectCreate.pitched_no_width", in_context,
            changed(pitched_resource(), [](auto& r) { r.res.pitch2D.width = 0; })),
      WRONG("cuTexObjectCreate.filter", in_context,
            sampled(array_resource(), [](auto& t) { t.filterMode = static_cast<CUfilter_mode>(7); })),
      WRONG("cuTexObjectCreate.address_mode", in_context,
            sampled(array_resource(), [](auto& t) { t.addressMode[0] = static_cast<CUaddress_mode>(9); })),
      WRONG("cuTexObjectCreate.wrap_unnormalised", in_context,
            sampled(array_resource(), [](auto& t) { t.addressMode[0] = CU_TR_ADDRESS_MODE_WRAP; })),
      WRONG("cuTexObjectCreate.flags", in_context,
            sampled(array_resource(), [](auto& t) { t.flags = 0x1000; })),
      WRONG("cuTexObjectCreate.linear_filter_of_integers", in_context,
            [] {
              auto a = plane(32, 32);
              a.Format = CU_AD_FORMAT_UNSIGNED_INT32;
              NEED(create(a));
              auto r = array_resource();
              r.res.array.hArray = o.array;
              CUDA_TEXTURE_DESC t{};
              t.filterMode = CU_TR_FILTER_MODE_LINEAR;
              return texture(r, t);
            }()),
      WRONG("cuTexObjectCreate.anisotropy", in_context,
            sampled(array_resource(), [](auto& t) { t.maxAnisotropy = 99; })),
      WRONG("cuTexObjectCreate.view_of_linear", in_context,
            [] {
              auto r = linear_resource();
              CUDA_TEXTURE_DESC t{};
              CUDA_RESOURCE_VIEW_DESC v{};
              v.format = CU_RES_VIEW_FORMAT_FLOAT_1X32, v.width = 1024;
              return cuTexObjectCreate(&o.texture, &r, &t, &v);
            }()),
      WRONG("cuTexObjectCreate.view_format", in_context,
            [] {
              auto r = array_resource();
              CUDA_TEXTURE_DESC t{};
              CUDA_RESOURCE_VIEW_DESC v{};
              v.format = CU_RES_VIEW_FORMAT_UINT_4X32, v.width = 64, v.height = 64;
              return cuTexObjectCreate(&o.texture, &r, &t, &v);
            }()),
      WRONG("cuTexObjectCreate.none", no_context, texture(array_resource())),
      WRONG("cuTexObjectDestroy.null", in_context, cuTexObjectDestroy(0)),
      WRONG("cuTexObjectDestroy.unknown", in_context, cuTexObjectDestroy(0x123456)),
      WRONG_DO("cuTexObjectDestroy.twice", alone,
               {
                 NEED(texture(array_resource()));
                 NEED(cuTexObjectDestroy(o.texture));
                 return cuTexObjectDestroy(o.texture);
               }),
      WRONG("cuTexObjectGetResourceDesc.unknown", in_context,
            [] {
              CUDA_RESOURCE_DESC r;
              return cuTexObjectGetResourceDesc(&r, 0x123456);
            }()),
      WRONG_DO("cuTexObjectGetResourceDesc.null", in_context,
               {
                 NEED(texture(array_resource()));
                 return cuTexObjectGetResourceDesc(nullptr, o.texture);
               }),
      WRONG("cuTexObjectGetTextureDesc.unknown", in_context,
            [] {
              CUDA_TEXTURE_DESC t;
              return cuTexObjectGetTextureDesc(&t, 0x123456);
            }()),
      WRONG_DO("cuTexObjectGetResourceViewDesc.no_view", in_context,
               {
                 NEED(texture(array_resource()));
                 CUDA_RESOURCE_VIEW_DESC v;
                 return cuTexObjectGetResourceViewDesc(&v, o.texture);
               }),
      WRONG("cuSurfObjectCreate.null", in_context,
            [] {
              auto r = array_resource();
              return cuSurfObjectCreate(nullptr, &r);
            }()),
      WRONG("cuSurfObjectCreate.null_resource", in_context, cuSurfObjectCreate(&o.surface, nullptr)),
      WRONG("cuSurfObjectCreate.linear", in_context, surface(linear_resource())),
      WRONG("cuSurfObjectCreate.not_for_surfaces", in_context, surface(array_resource())),
      WRONG("cuSurfObjectCreate.null_array", in_context,
            [] {
              auto r = array_resource();
              r.res.array.hArray = nullptr;
              return surface(r);
            }()),
      WRONG("cuSurfObjectDestroy.unknown", in_context, cuSurfObjectDestroy(0x123456)),
      WRONG("cuSurfObjectGetResourceDesc.unknown", in_context,
            [] {
              CUDA_RESOURCE_DESC r;
              return cuSurfObjectGetResourceDesc(&r, 0x123456);
            }()),
      WRONG("cuTexRefCreate.null", in_context, cuTexRefCreate(nullptr)),
      WRONG("cuTexRefDestroy.null", in_context, cuTexRefDestroy(nullptr)),
      WRONG("cuTexRefSetArray.null", in_context, cuTexRefSetArray(nullptr, w.array, CU_TRSA_OVERRIDE_FORMAT)),
      WRONG_DO("cuTexRefSetArray.flags", in_context,
               {
                 CUtexref r = nullptr;
                 NEED(cuTexRefCreate(&r));
                 return cuTexRefSetArray(r, w.array, 0);
               }),
      WRONG_DO("cuTexRefSetFormat.channels", in_context,
               {
                 CUtexref r = nullptr;
                 NEED(cuTexRefCreate(&r));
                 return cuTexRefSetFormat(r, CU_AD_FORMAT_FLOAT, 3);
               }),
      WRONG_DO("cuTexRefSetAddressMode.dimension", in_context,
               {
                 CUtexref r = nullptr;
                 NEED(cuTexRefCreate(&r));
                 return cuTexRefSetAddressMode(r, 3, CU_TR_ADDRESS_MODE_CLAMP);
               }),
      WRONG_DO("cuTexRefGetArray.none_set", in_context,
               {
                 CUtexref r = nullptr;
                 NEED(cuTexRefCreate(&r));
                 return cuTexRefGetArray(&o.array, r);
               }),
  };
}

}  // namespace wrong_calls
