#include "api/nvml/functions.hh"

#include <gtest/gtest.h>

#include <fstream>
#include <set>
#include <sstream>
#include <string>

#include "api/nvml/forms.hh"
#include "base/testing/places.hh"

namespace outboard::api::nvml {
namespace {

TEST(nvml_functions, are_in_opcode_order_and_once_each) {
  std::set<std::string_view> names;
  std::uint32_t last = 0;
  for (const function_info& f : functions()) {
    EXPECT_GT(static_cast<std::uint32_t>(f.code), last) << f.name;
    last = static_cast<std::uint32_t>(f.code);
    EXPECT_TRUE(names.insert(f.name).second) << f.name;
    EXPECT_EQ(f.chapter, chapter_name(f.code));
    EXPECT_EQ(f.about.error, parse_error::none) << f.name;
    EXPECT_EQ(find_function(static_cast<std::uint32_t>(f.code)), &f);
    EXPECT_EQ(find_function(f.name), &f);
  }
  for (std::uint32_t code : {0u, 1u, 100999u, 101999u, 117000u, ~0u})
    EXPECT_EQ(find_function(code), nullptr) << code;
  EXPECT_EQ(find_function("nvmlDeviceGet"), nullptr);
}

// The issue asks for 250; what is LATER has no symbol.
TEST(nvml_functions, enough_are_exported) {
  int exported = 0;
  for (const function_info& f : functions()) exported += f.about.how != kind::later;
  EXPECT_GE(exported, 250);
}

// The wire carries opcodes. A line may be appended to its chapter; then append it here too. Nothing else may
// change.
TEST(nvml_functions, opcodes_never_change) {
  const std::string path = in_checkout("src/api/nvml/opcodes.golden");
  std::ifstream golden(path);
  ASSERT_TRUE(golden) << path;
  std::size_t listed = 0;
  std::string line;
  while (std::getline(golden, line)) {
    if (line.empty() || line.front() == '#') continue;
    std::istringstream in(line);
    std::uint32_t code = 0;
    std::string name;
    in >> code >> name;
    ++listed;
    const function_info* f = find_function(code);
    ASSERT_NE(f, nullptr) << line;
    EXPECT_EQ(f->name, name);
  }
  EXPECT_EQ(listed, functions().size());
}

/// A pointer in a struct would be the program's own address, followed in another process: it is a list or a
/// text, which travel by what they lead to. Those are not looked for in unions, and what is listed has one
/// version and no handles.
void expect_no_pointers(const struct_layout& layout, bool in_union = false) {
  for (const field_layout& field : layout.fields) {
    const bool leads = field.pointer || field.kind != field_kind::plain;
    EXPECT_FALSE(field.pointer || (leads && (in_union || layout.is_union)))
        << layout.name << "." << field.name;
    if (field.nested) expect_no_pointers(*field.nested(), in_union || layout.is_union);
    if (!field.listed) continue;
    const struct_layout& listed = *field.listed();
    EXPECT_EQ(listed.version, 0u) << listed.name;
    for (const field_layout& inner : listed.fields) EXPECT_EQ(inner.handle, handle_kind::none) << listed.name;
    expect_no_pointers(listed);
  }
}

TEST(nvml_forms, no_pointer_travels_inside_of_a_struct) {
  for (const function_form& form : forms()) {
    for (const parameter_form& p : form.parameters) {
      if (p.layout) expect_no_pointers(*p.layout());
    }
  }
}

// What a list or a tail brings back must find its count unchanged by the way there.
TEST(nvml_forms, structs_that_lead_elsewhere_go_both_ways) {
  for (const function_form& form : forms()) {
    for (std::size_t i = 0; i < form.parameters.size(); ++i) {
      const parameter_form& p = form.parameters[i];
      if (!p.layout || !leads_elsewhere(*p.layout())) continue;
      EXPECT_EQ(form.about->parameters[i].dir, direction::inout)
          << find_function(static_cast<std::uint32_t>(form.code))->name;
      EXPECT_EQ(form.about->parameters[i].count, count_kind::one);
    }
  }
}

TEST(nvml_forms, every_travelling_line_has_one) {
  std::size_t travelling = 0;
  for (const function_info& f : functions()) {
    const function_form* form = find_form(static_cast<std::uint32_t>(f.code));
    const bool travels = f.about.how == kind::call || f.about.how == kind::custom;
    EXPECT_EQ(form != nullptr, travels) << f.name;
    if (form) {
      EXPECT_EQ(form->parameters.size(), f.about.arity) << f.name;
    }
    travelling += travels;
  }
  EXPECT_EQ(travelling, forms().size());
}

// Whoever has an array must be told its size before it is filled: a count stands in the line.
TEST(nvml_forms, structs_with_a_version_go_both_ways) {
  for (const function_form& form : forms()) {
    for (std::size_t i = 0; i < form.parameters.size(); ++i) {
      const parameter_form& p = form.parameters[i];
      if (!p.layout || p.layout()->version == 0) continue;
      EXPECT_NE(form.about->parameters[i].dir, direction::out)
          << find_function(static_cast<std::uint32_t>(form.code))->name;
    }
  }
}

}  // namespace
}  // namespace outboard::api::nvml
