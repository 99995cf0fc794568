// The guide's rules for fetching, texel by texel; and the instructions that ask for it.
#include "ptx/run/texture.hh"

#include <bit>
#include <cmath>

#include "ptx/run/executor_testing.hh"

namespace outboard::ptx {
namespace {

float value(std::uint32_t bits) { return std::bit_cast<float>(bits); }

/// A float image with `content` row behind row.
struct picture {
  std::vector<float> content;
  texture t;
  picture(std::uint32_t width, std::uint32_t height, std::uint32_t depth, std::vector<float> v)
      : content(std::move(v)) {
    image_level level;
    level.data = reinterpret_cast<char*>(content.data());
    level.width = width, level.height = height, level.depth = depth;
    level.pitch = std::uint64_t{width} * 4, level.slice = level.pitch * height;
    t.memory.levels = {level};
    t.how.modes = {address_mode::clamp, address_mode::clamp, address_mode::clamp};
  }
  float at(geometry g, float x, float y = 0, float z = 0, std::uint32_t layer = 0) const {
    texture_query q;
    q.shape = g, q.at = {x, y, z}, q.layer = layer;
    return value(texture_sample(t, q)[0]);
  }
};

TEST(Texture, PointSamplingTakesTheTexelBelow) {
  const picture p(4, 2, 1, {0, 1, 2, 3, 10, 11, 12, 13});
  EXPECT_EQ(p.at(geometry::d1, 0.0f), 0);
  EXPECT_EQ(p.at(geometry::d1, 2.999f), 2);
  EXPECT_EQ(p.at(geometry::d2, 3.5f, 1.5f), 13);
  EXPECT_EQ(p.at(geometry::d2, -100, 1e30f), 10);
  EXPECT_EQ(p.at(geometry::d2, std::nanf(""), 0), 0);
}

TEST(Texture, LinearWeightsHaveEightFractionalBits) {
  picture p(4, 1, 1, {0, 256, 0, 0});
  p.t.how.linear = true;
  EXPECT_EQ(p.at(geometry::d1, 0.5f), 0);
  EXPECT_EQ(p.at(geometry::d1, 1.0f), 128);
  EXPECT_EQ(p.at(geometry::d1, 0.5f + 1.4f / 256), 1);  // rounded, not cut
  EXPECT_EQ(p.at(geometry::d1, 0.5f + 1.6f / 256), 2);
  EXPECT_EQ(p.at(geometry::d1, 0.5f + 255.9f / 256), 256);
}

// Read off an H200: fractions of a texel and the weights of the eight corners, in 256ths.
TEST(Texture, FilterWeightsAreWholeAndSumToOne) {
  const struct {
    int fraction[3];
    float weights[8];
  } measured[] = {
      {{42, 200, 0}, {47, 9, 167, 33, 0, 0, 0, 0}},     {{161, 104, 0}, {56, 96, 39, 65, 0, 0, 0, 0}},
      {{231, 227, 0}, {3, 26, 22, 205, 0, 0, 0, 0}},    {{48, 1, 0}, {207, 48, 1, 0, 0, 0, 0, 0}},
      {{32, 32, 32}, {172, 24, 24, 4, 25, 3, 3, 1}},    {{32, 96, 32}, {123, 17, 73, 11, 18, 2, 10, 2}},
      {{57, 242, 184}, {3, 1, 53, 15, 8, 2, 135, 39}},  {{167, 213, 141}, {7, 13, 33, 62, 8, 15, 41, 77}},
      {{168, 110, 255}, {0, 1, 0, 0, 50, 95, 38, 72}},  {{77, 217, 97}, {17, 7, 94, 41, 10, 4, 58, 25}},
      {{254, 139, 35}, {1, 100, 1, 119, 0, 16, 0, 19}},
  };
  for (const auto& m : measured) {
    for (std::size_t corner = 0; corner < 8; ++corner) {
      std::vector<float> texels(8);
      texels[corner] = 256;
      picture p(2, 2, 2, texels);
      p.t.how.linear = true;
      const auto at = [&](int d) { return 0.5f + static_cast<float>(m.fraction[d]) / 256; };
      EXPECT_EQ(p.at(geometry::d3, at(0), at(1), at(2)), m.weights[corner])
          << m.fraction[0] << ' ' << m.fraction[1] << ' ' << m.fraction[2] << " corner " << corner;
    }
  }
}

TEST(Texture, AddressModes) {
  picture p(4, 1, 1, {1, 2, 3, 4});
  p.t.how.border = {9, 9, 9, 9};
  p.t.how.normalized = true;
  const auto row = [&](address_mode mode) {
    p.t.how.modes[0] = mode;
    std::vector<float> v;
    for (const float x : {-1.125f, -0.125f, 0.125f, 0.875f, 1.125f, 2.375f})
      v.push_back(p.at(geometry::d1, x));
    return v;
  };
  EXPECT_EQ(row(address_mode::clamp), (std::vector<float>{1, 1, 1, 4, 4, 4}));
  EXPECT_EQ(row(address_mode::wrap), (std::vector<float>{4, 4, 1, 4, 1, 2}));
  EXPECT_EQ(row(address_mode::mirror), (std::vector<float>{4, 1, 1, 4, 4, 2}));
  EXPECT_EQ(row(address_mode::border), (std::vector<float>{9, 9, 1, 4, 9, 9}));
  p.t.how.linear = true;
  p.t.how.modes[0] = address_mode::wrap;
  EXPECT_EQ(p.at(geometry::d1, 0.0f), 2.5f);  // between the last and the first
  p.t.how.modes[0] = address_mode::border;
  EXPECT_EQ(p.at(geometry::d1, 0.0f), 5.0f);  // between the border and the first
  p.t.how.modes[1] = address_mode::border;    // as measured: half of what a row without rows above it gives
  EXPECT_EQ(p.at(geometry::d1, 0.0f), 7.0f);
  // Without normalised coordinates nothing wraps.
  p.t.how.normalized = false, p.t.how.linear = false;
  p.t.how.modes[0] = address_mode::wrap;
  EXPECT_EQ(p.at(geometry::d1, 5.5f), 4);
}

TEST(Texture, LayersAndSolidsUseTheThirdDimensionDifferently) {
  picture p(2, 2, 2, {0, 0, 0, 0, 8, 8, 8, 8});
  p.t.how.linear = true;
  EXPECT_EQ(p.at(geometry::d3, 1, 1, 1), 4);
  EXPECT_EQ(p.at(geometry::a2d, 1, 1, 0, 1), 8);
  EXPECT_EQ(p.at(geometry::a2d, 1, 1, 0, 99), 8);
  EXPECT_EQ(p.at(geometry::a2d, 1, 1, 0, 0), 0);
}

TEST(Texture, SeamlessCubesFilterAcrossEdges) {
  std::vector<float> faces;
  for (int face = 0; face < 6; ++face) faces.insert(faces.end(), 16, static_cast<float>(face * 10));
  picture p(4, 4, 6, faces);
  p.t.memory.cube = true;
  p.t.how.linear = p.t.how.normalized = true;
  EXPECT_EQ(p.at(geometry::cube, 1, 0, 0.999f), 0);
  p.t.how.seamless = true;
  EXPECT_NEAR(p.at(geometry::cube, 1, 0, 0.9999f), 20, 0.5);  // halfway between +x (0) and +z (40)
  EXPECT_EQ(p.at(geometry::cube, 1, 0, 0), 0);
}

TEST(Texture, LevelsAreClampedBiasedAndMixed) {
  std::vector<float> small(1, 100);
  picture p(2, 2, 1, {0, 0, 0, 0});
  image_level second = p.t.memory.levels[0];
  second.data = reinterpret_cast<char*>(small.data()), second.width = second.height = 1;
  p.t.memory.levels.push_back(second);
  p.t.how.normalized = p.t.how.between_levels = true;
  p.t.how.highest = 10;
  texture_query q;
  q.shape = geometry::d2, q.at = {0.5f, 0.5f, 0};
  const auto level = [&](float l) { return q.level = l, value(texture_sample(p.t, q)[0]); };
  EXPECT_EQ(level(0), 0);
  EXPECT_EQ(level(0.25f), 25);
  EXPECT_EQ(level(7), 100);
  p.t.how.bias = 0.5f;
  EXPECT_EQ(level(0.25f), 75);
  p.t.how.highest = 0.5f;
  EXPECT_EQ(level(1), 50);
  p.t.how.between_levels = false, p.t.how.highest = 10, p.t.how.bias = 0;
  EXPECT_EQ(level(0.75f), 100);
  q.has_gradient = true;  // two texels a pixel: one level down
  q.gradient = {1, 0, 0, 0, 0.25f, 0};
  EXPECT_EQ(value(texture_sample(p.t, q)[0]), 100);
  q.gradient = {0.5f, 0, 0, 0, 0.5f, 0};
  EXPECT_EQ(value(texture_sample(p.t, q)[0]), 0);
}

TEST(Texture, FormatsBecomeFloatsOrStayIntegers) {
  struct sample {
    texel format;
    std::uint32_t stored;
    std::uint32_t integer;
    float real;
  };
  for (const sample& s :
       {sample{texel::u8, 51, 51, 0.2f}, sample{texel::s8, 0x80, 0xffffff80, -1},
        sample{texel::u16, 65535, 65535, 1}, sample{texel::s16, 0xffff, 0xffffffff, -1.0f / 32767}}) {
    std::uint32_t memory = s.stored;
    texture t;
    image_level level;
    level.data = reinterpret_cast<char*>(&memory);
    t.memory.format = s.format, t.memory.levels = {level};
    EXPECT_EQ(value(texture_sample(t, {})[0]), s.real);
    t.how.as_integer = true;
    EXPECT_EQ(texture_sample(t, {})[0], s.integer);
  }
  for (const float f : {0.0f, -0.0f, 1.0f, 65504.0f, 6e-8f, 0.333251953125f, -2.0f}) {
    EXPECT_EQ(value(half_to_float_bits(float_to_half_bits(f))), f == 6e-8f ? 0x1p-24f : f);
  }
  EXPECT_EQ(float_to_half_bits(65520.0f), 0x7c00);
  EXPECT_EQ(float_to_half_bits(2049.0f), 0x6800);  // halfway: to even
  EXPECT_TRUE(std::isnan(value(half_to_float_bits(float_to_half_bits(std::nanf(""))))));
}

class one_of_each : public texture_source {
 public:
  const texture* find_texture(std::uint64_t handle) const override {
    return handle == 7 ? texture_ : nullptr;
  }
  const image* find_surface(std::uint64_t handle) const override { return handle == 9 ? surface_ : nullptr; }
  const texture* texture_ = nullptr;
  const image* surface_ = nullptr;
};

class texture_instructions : public executor_fixture {
 protected:
  /// Eight words that 32 lanes with the texture 7 and the surface 9 leave in `out`; %rd3 is the lane's place.
  std::vector<std::uint32_t> run(const std::string& body, launch_result& result) {
    std::vector<std::uint32_t> out(32 * 8);
    memory_.ranges.clear();
    device(out);
    load(kernel_text(".param .u64 t, .param .u64 s, .param .u64 out",
                     ".reg .pred p; .reg .b64 %rd<8>; .reg .b32 r<16>; .reg .f32 f<16>; .reg .b16 h<8>;\n"
                     "ld.param.u64 %rd1, [t]; ld.param.u64 %rd2, [s]; ld.param.u64 %rd3, [out];\n"
                     "mov.u32 r0, %tid.x; mad.wide.u32 %rd3, r0, 32, %rd3; cvt.rn.f32.u32 f0, r0;\n" +
                         body));
    if (!module_) return out;
    launch_request r;
    const packed arguments(std::uint64_t{7}, std::uint64_t{9}, out.data());
    r.module = module_, r.kernel = "k", r.block = {32, 1, 1}, r.parameters = arguments.bytes();
    r.memory = &memory_, r.textures = &objects_;
    result = executor_.run(r);
    return out;
  }
  std::vector<std::uint32_t> run(const std::string& body) {
    launch_result result;
    auto out = run(body, result);
    EXPECT_TRUE(result.ok()) << result.text;
    return out;
  }
  one_of_each objects_;
};

TEST_F(texture_instructions, FetchesInEveryForm) {
  picture p(32, 2, 1, std::vector<float>(64));
  for (std::size_t i = 0; i < 64; ++i) p.content[i] = static_cast<float>(i);
  objects_.texture_ = &p.t;
  auto out =
      run("mov.f32 f1, 0f3F800000; add.f32 f0, f0, 0f3F000000;\n"
          "tex.2d.v4.f32.f32 {f2, f3, f4, f5}, [%rd1, {f0, f1}];\n"
          "tex.1d.v4.f32.s32 {f6, _, _, f7}, [%rd1, {r0}];\n"
          "tex.level.2d.v4.u32.f32 {r2, r3, r4, r5}|p, [%rd1, {f0, f1}], f1;\n"
          "selp.u32 r3, 1, 0, p;\n"
          "tld4.r.2d.v4.f32.f32 {f8, f9, f10, f11}, [%rd1, {f0, f1}];\n"
          "txq.width.b32 r6, [%rd1]; txq.height.b32 r7, [%rd1];\n"
          "st.global.v4.f32 [%rd3], {f2, f6, f7, f8};\n"
          "st.global.v4.u32 [%rd3+16], {r2, r3, r6, r7};");
  for (std::uint32_t l = 0; l < 32; ++l) {
    const auto* o = &out[l * 8];
    EXPECT_EQ(value(o[0]), static_cast<float>(l + 32));
    EXPECT_EQ(value(o[1]), static_cast<float>(l));
    EXPECT_EQ(value(o[2]), 1.0f);
    EXPECT_EQ(value(o[3]), static_cast<float>(l + 32));  // tld4: first column, second row
    EXPECT_EQ(value(o[4]), static_cast<float>(l + 32));
    EXPECT_EQ(o[5], 1u);
    EXPECT_EQ(o[6], 32u);
    EXPECT_EQ(o[7], 2u);
  }
  out =
      run("mov.f32 f1, 0f00000000; add.f32 f0, f0, 0f3F000000;\n"
          "tex.2d.v4.f16.f32 {h0, h1, h2, h3}, [%rd1, {f0, f1}];\n"
          "tex.grad.2d.v4.f32.f32 {f2, f3, f4, f5}, [%rd1, {f0, f1}], {f1, f1}, {f1, f1};\n"
          "cvt.f32.f16 f6, h0; st.global.v2.f32 [%rd3], {f6, f2};");
  for (std::uint32_t l = 0; l < 32; ++l) {
    EXPECT_EQ(value(out[l * 8]), static_cast<float>(l));
    EXPECT_EQ(value(out[l * 8 + 1]), static_cast<float>(l));
  }
}

TEST_F(texture_instructions, SurfacesLoadStoreAndReduce) {
  picture p(32, 2, 1, std::vector<float>(64));
  p.t.memory.format = texel::u32;
  objects_.surface_ = &p.t.memory;
  auto out =
      run("shl.b32 r1, r0, 2; mov.u32 r2, 1; mov.u32 r3, 500;\n"
          "sust.b.2d.b32.trap [%rd2, {r1, r2}], {r0};\n"
          "sured.b.add.2d.u32.trap [%rd2, {r1, r2}], r2;\n"
          "sured.b.max.2d.s32.zero [%rd2, {r3, r2}], r3;\n"
          "suld.b.2d.b32.trap {r4}, [%rd2, {r1, r2}];\n"
          "suld.b.2d.b32.zero {r5}, [%rd2, {r3, r2}];\n"
          "suld.b.2d.b32.clamp {r6}, [%rd2, {r3, r3}];\n"
          "suld.b.2d.v2.b16.clamp {h0, h1}, [%rd2, {r1, r2}]; cvt.u32.u16 r7, h0;\n"
          "suq.height.b32 r8, [%rd2];\n"
          "st.global.v4.u32 [%rd3], {r4, r5, r6, r7}; st.global.u32 [%rd3+16], r8;");
  for (std::uint32_t l = 0; l < 32; ++l) {
    const auto* o = &out[l * 8];
    EXPECT_EQ(o[0], l + 1);
    EXPECT_EQ(o[1], 0u);
    EXPECT_EQ(o[2], 32u);
    EXPECT_EQ(o[3], l + 1);
    EXPECT_EQ(o[4], 2u);
  }
}

TEST_F(texture_instructions, WhatIsWrongIsAFaultOfTheKernel) {
  picture p(32, 2, 1, std::vector<float>(64));
  objects_.surface_ = &p.t.memory;
  launch_result result;
  run("tex.1d.v4.f32.f32 {f2, f3, f4, f5}, [%rd1, {f0}];", result);  // no such texture
  EXPECT_EQ(result.kind, outcome::illegal_address);
  run("mov.u32 r1, 128; sust.b.1d.b32.trap [%rd2, {r1}], {r1};", result);
  EXPECT_EQ(result.kind, outcome::trap);
  run("mov.u32 r1, 2; sust.b.1d.b32.trap [%rd2, {r1}], {r1};", result);
  EXPECT_EQ(result.kind, outcome::misaligned_address);
}

TEST_F(texture_instructions, UnsupportedFormsAreRefusedAtLoad) {
  const auto why = [](const std::string& text) {
    return refusal(
        kernel_text(".param .u64 t", ".reg .b64 %rd<3>; .reg .f32 f<8>; .reg .b32 r<8>;\n" + text));
  };
  EXPECT_NE(why("tex.2d.v4.f32.f32 {f0, f1, f2, f3}, [%rd1, %rd2, {f4, f5}];"), "");
  EXPECT_NE(why("tex.2d.v4.f32.f32 {f0, f1, f2, f3}, [%rd1, {f4}];"), "");
  EXPECT_NE(why("tex.2dms.v4.f32.s32 {f0, f1, f2, f3}, [%rd1, {r4, r5, r6, r6}];"), "");
  EXPECT_NE(why("ld.global.f32 f0, [%rd1, {r1}];"), "");
  EXPECT_EQ(why("tex.3d.v4.f32.f32 {f0, f1, f2, f3}, [%rd1, {f4, f5, f6, f6}];"), "");
}

}  // namespace
}  // namespace outboard::ptx
