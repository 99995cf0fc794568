// Rules for textures and surfaces, all of them bindless.
#include "kernel.hh"
#include "writing.hh"

namespace conformance {
namespace {

std::string geometry_of(const form& f) { return f.first_of({"1d", "2d", "3d", "a1d", "a2d", "cube"}); }

/// How tex and surface instructions write the coordinates of a geometry.
std::string coordinates(const std::string& geometry, const std::string& x, const std::string& y,
                        const std::string& z, const std::string& layer) {
  if (geometry == "1d") return "{" + x + "}";
  if (geometry == "2d") return "{" + x + ", " + y + "}";
  if (geometry == "a1d") return "{" + layer + ", " + x + "}";
  if (geometry == "a2d") return "{" + layer + ", " + x + ", " + y + ", " + y + "}";
  return "{" + x + ", " + y + ", " + z + ", " + z + "}";
}

std::optional<kernel> tex_kernel(const form& f) {
  const std::string geometry = geometry_of(f);
  if (geometry.empty() || f.types() != 2 || !f.has("v4") || f.has("grad")) return {};
  const std::string result = f.type(0), at = f.type(1);
  const bool level = f.has("level"), real = at == "f32";
  kernel k;
  k.in = {{at, values::small}, {at, values::small}, {at, values::small}};
  k.out = {result, result, result, result};
  k.texture.geometry = geometry, k.texture.channel = result;
  k.texture.normalized = level || geometry == "cube";
  k.texture.linear = real && result == "f32" && !k.texture.normalized;
  k.texture.mipmaps = level ? 3 : 1;
  if (k.texture.linear) k.within.absolute = 0x1p-8;  // weights have eight bits
  k.body = "ld.param.u64 w0, [pobject];\nand.b32 r5, t, 3;\n";
  if (real && k.texture.normalized) {  // away from the borders of texels and faces
    k.body +=
        "mul.rn.f32 a, a, 0f3E4CCCCD;\nmul.rn.f32 b, b, 0f3E6B851F;\n"
        "add.rn.f32 a, a, 0f3CF5C28F;\nsub.rn.f32 b, b, 0f3D8F5C29;\nadd.rn.f32 c, c, 0f3C343958;\n";
  }
  std::string extra;
  if (level && real) k.body += "cvt.rn.f32.u32 r6, r5;\n", extra = ", r6";
  if (level && !real) extra = ", r5";
  k.body +=
      f.text + " {d, d1, d2, d3}, [w0, " + coordinates(geometry, "a", "b", "c", "r5") + "]" + extra + ";\n";
  return k;
}

std::optional<kernel> surface_kernel(const form& f) {
  const std::string geometry = geometry_of(f), t = f.type();
  if (geometry.empty() || geometry == "cube" || !f.has("b") || t.empty() || bits_of(t) > 32) return {};
  const unsigned lanes = f.has("v4") ? 4 : f.has("v2") ? 2 : 1, bytes = bits_of(t) / 8 * lanes;
  const bool store = f.family == "sust", beyond = !f.has("trap");
  kernel k;
  k.texture.geometry = geometry, k.texture.surface = true, k.texture.channels = lanes;
  k.texture.channel = t == "b8" ? "u8" : t == "b16" ? "u16" : "u32";
  // Thread t has its own texel: x fastest, then y, then z or the layer.
  const std::string wide = geometry == "1d" ? "8" : geometry == "a1d" ? "6" : geometry == "3d" ? "3" : "4";
  k.body = "ld.param.u64 w0, [pobject];\nshl.b32 r0, 1, " + wide +
           ";\nsub.u32 r0, r0, 1;\nand.b32 r1, t, r0;\n"
           "shr.u32 r2, t, " +
           wide + ";\nand.b32 r3, r2, r0;\nshr.u32 r4, r2, " + wide +
           ";\nand.b32 r4, r4, 3;\n"
           "and.b32 r5, r2, 3;\nmul.lo.u32 r1, r1, " +
           std::to_string(bytes) + ";\n";
  if (geometry == "a2d") k.body += "mov.u32 r5, 2;\n";
  if (beyond) k.body += "add.u32 r1, r1, " + std::to_string(3 * bytes) + ";\n";  // the last three are outside
  const std::string place = "[w0, " + coordinates(geometry, "r1", "r3", "r4", "r5") + "]";
  const std::string reg = bits_of(t) < 32 ? "b16" : "b32";
  if (store) {
    k.in = {{"b32"}};
    k.out = {"b32"};
    std::vector<std::string> names;
    k.body +=
        "mov.b32 d, a;\nmov.b32 {h0, h1}, a;\nmov.b32 {h2, h3}, t;\nnot.b32 r10, a;\nadd.u32 r11, a, t;\n"
        "mul.lo.u32 r12, a, 77;\nmov.b32 r13, t;\n";
    for (unsigned n = 0; n < lanes; ++n)
      names.push_back(reg == "b16" ? "h" + std::to_string(n) : "r1" + std::to_string(n));
    k.body += "setp.lt.u32 p, t, 256;\n@p " + f.text + " " + place + ", " + vector_of(names) + ";\n";
  } else {
    std::vector<std::string> names;
    for (unsigned n = 0; n < lanes; ++n) k.out.push_back(reg), names.push_back(result_name(n));
    k.body += f.text + " " + vector_of(names) + ", " + place + ";\n";
  }
  return k;
}

}  // namespace

std::optional<kernel> texture_rule(const form& f) {
  if (f.family == "tex") return tex_kernel(f);
  if (f.family == "sust" || f.family == "suld") return surface_kernel(f);
  return {};
}

}  // namespace conformance
