// mma, wmma, ldmatrix and their kin.
#include "ptx/decode/decode.hh"
#include "ptx/run/plain_matrix.hh"

namespace outboard::ptx {

cell decoder::take_cell() {
  for (std::size_t n = 0; n < taken_.size(); ++n) {
    if (taken_[n]) continue;
    const cell c = cell_of(now_->modifiers[n]);
    if (c == cell::count) continue;
    taken_[n] = true;
    return c;
  }
  return cell::count;
}

fragment decoder::make(const matrix_shape& s, operand_of which, cell kind, bool wmma) {
  auto positions = std::make_shared<std::vector<std::uint16_t>>();
  fragment f;
  if (kind == cell::count || s.m == 0 || !make_fragment(s, which, kind, wmma, f, *positions)) {
    return fail("unsupported shape or type of a matrix"), f;
  }
  f.position = positions->data();
  out_.details.push_back(positions);
  return f;
}

void decoder::fragment_registers(const operand& o, fragment& f, bool target_registers) {
  if (!ok_) return;
  const bool single = f.registers == 1 && o.kind != operand_kind::list;
  if (!single && (o.kind != operand_kind::list || o.parts.size() != f.registers)) {
    return fail("expected " + std::to_string(f.registers) + " registers");
  }
  const type t = f.kind == cell::f64 ? type::f64 : type::b32;
  for (std::uint32_t n = 0; n < f.registers && ok_; ++n) {
    const operand& part = single ? o : o.parts[n];
    f.r[n] = target_registers ? target(part, t) : source(part, t);
  }
}

void decoder::do_mma() {
  if (!take("sync") || !take("aligned")) return fail("sparse matrices are not supported:");
  matrix_shape s;
  for (const auto m : now_->modifiers) {
    if (const auto found = shape_of(m); found.m != 0) s = found, take(m);
  }
  // .alayout.blayout, the same word twice perhaps
  const auto layout = [&] { return take("col") ? 2 : take("row") ? 1 : 0; };
  bool by_column[2] = {false, true};
  std::size_t layouts = 0;
  for (std::size_t n = 0; n < taken_.size(); ++n) {
    const auto m = now_->modifiers[n];
    if ((m == "row" || m == "col") && layouts < 2) by_column[layouts++] = m == "col";
  }
  while (layout() != 0) {
  }
  multiply_step all;
  all.saturate = take("satfinite");
  if (take("xor")) all.how = product::xor_popc;
  if (take("and")) all.how = product::and_popc;
  if (all.how != product::multiply && !take("popc")) return fail("expected .popc");
  for (const auto m : {"rn", "rz", "rm", "rp"}) {
    if (take(m) && std::string_view(m) != "rn") return fail("unsupported rounding");
  }
  const cell d = take_cell(), a = take_cell(), b = take_cell(), c = take_cell();
  count(4);
  if (!ok_) return;
  const bool small = s.m == 8 && s.n == 8 && s.k == 4 && a == cell::f16;
  const auto part = [&](operand_of which, cell kind, bool column) {
    if (!small) return make(s, which, kind, false);
    auto positions = std::make_shared<std::vector<std::uint16_t>>();
    fragment f;
    if (kind == cell::count || !make_quad_pair_fragment(which, kind, column, f, *positions)) {
      fail("unsupported type of a matrix");
    }
    f.position = positions->data();
    out_.details.push_back(positions);
    return f;
  };
  if (!small && (by_column[0] || !by_column[1])) return fail("this shape is .row.col only");
  all.problems = small ? 4 : 1;
  all.a = part(operand_of::a, a, by_column[0]), all.b = part(operand_of::b, b, by_column[1]);
  all.c = part(operand_of::accumulator, c, false), all.d = part(operand_of::accumulator, d, false);
  multiply_registers(all);
}

/// Refuses what the types of the factors and sums cannot be together; reads and writes the registers.
void decoder::multiply_registers(multiply_step& all) {
  if (!ok_) return;
  const bool integers = all.a.kind >= cell::s8;
  const auto like = [&](const fragment& f, cell kind) { return (f.kind == kind) == (all.a.kind == kind); };
  const bool factors = bits_of_cell(all.a.kind) == bits_of_cell(all.b.kind) &&
                       integers == (all.b.kind >= cell::s8) && like(all.b, cell::b1) &&
                       like(all.b, cell::f16) && like(all.b, cell::bf16);
  const bool sums = (all.d.kind == cell::s32) == integers && (all.c.kind == cell::s32) == integers &&
                    like(all.c, cell::f64) && like(all.d, cell::f64);
  if (!factors || !sums || (all.how != product::multiply) != (all.a.kind == cell::b1)) {
    return fail("unsupported combination of types");
  }
  fragment_registers(at(1), all.a, false), fragment_registers(at(2), all.b, false);
  fragment_registers(at(3), all.c, false), fragment_registers(at(0), all.d, true);
  if (ok_) detail<multiply_step>(steps().multiply) = all;
}

void decoder::do_wmma() {
  if (take("load")) return wmma_move(false);
  if (take("store")) return wmma_move(true);
  if (take("mma")) return wmma_multiply();
  fail("expected .load, .store or .mma");
}

void decoder::wmma_multiply() {
  take("sync"), take("aligned");
  matrix_shape s;
  for (const auto m : now_->modifiers) {
    if (const auto found = shape_of(m); found.m != 0) s = found, take(m);
  }
  // Fragments are the same however memory was laid out.
  while (take("row") || take("col")) {
  }
  multiply_step all;
  all.saturate = take("satfinite");
  if (take("xor")) all.how = product::xor_popc;
  if (take("and")) all.how = product::and_popc;
  if (all.how != product::multiply && !take("popc")) return fail("expected .popc");
  if (take("rz") || take("rm") || take("rp")) return fail("unsupported rounding");
  take("rn");
  std::vector<cell> types;
  for (cell c = take_cell(); c != cell::count; c = take_cell()) types.push_back(c);
  count(4);
  if (!ok_) return;
  // Of halves only the types of d and c are written.
  if (types.size() == 2) types = {types[0], cell::f16, cell::f16, types[1]};
  if (types.size() != 4) return fail("unsupported types");
  all.a = make(s, operand_of::a, types[1], true), all.b = make(s, operand_of::b, types[2], true);
  all.c = make(s, operand_of::accumulator, types[3], true);
  all.d = make(s, operand_of::accumulator, types[0], true);
  multiply_registers(all);
}

void decoder::wmma_move(bool store) {
  tile_step all;
  all.store = store;
  const operand_of which = take("a")                 ? operand_of::a
                           : take("b")               ? operand_of::b
                           : take(store ? "d" : "c") ? operand_of::accumulator
                                                     : (fail("expected .a, .b, .c or .d"), operand_of::a);
  if (store && which != operand_of::accumulator) return fail("only .d can be stored");
  take("sync"), take("aligned");
  matrix_shape s;
  for (const auto m : now_->modifiers) {
    if (const auto found = shape_of(m); found.m != 0) s = found, take(m);
  }
  all.by_column = take("col");
  if (!all.by_column && !take("row")) return fail("expected .row or .col");
  const space where = take_space();
  const cell kind = take_cell();
  count(2, 3);
  if (!ok_) return;
  all.tile = make(s, which, kind, true);
  if (!ok_) return;
  all.bits = bits_of_cell(kind);
  if (all.bits < 8 && all.by_column != (which == operand_of::b))
    return fail("unsupported layout of this type");
  fragment_registers(at(store ? 1 : 0), all.tile, !store);
  all.base = locate(at(store ? 0 : 1), where);
  if (where == space::local || where == space::param) return fail("unsupported state space");
  all.stride = now_->operands.size() > 2 ? source(at(2), type::u32)
                                         : constant(all.by_column ? all.tile.rows : all.tile.columns, 4);
  if (ok_) detail<tile_step>(tile_run) = all;
}

/// ldmatrix, stmatrix
void decoder::do_rows() {
  rows_step all;
  all.store = now_->name == "stmatrix";
  take("sync"), take("aligned");
  if (!take("m8n8")) return fail("unsupported shape");
  all.matrices = take("x1") ? 1 : take("x2") ? 2 : take("x4") ? 4 : 0;
  if (all.matrices == 0) return fail("expected .x1, .x2 or .x4");
  all.transposed = take("trans");
  take_space();
  if (!take("b16")) return fail("unsupported type");
  count(2);
  const operand& values = at(all.store ? 1 : 0);
  std::vector<const operand*> parts;
  if (!ok_) return;
  if (values.kind == operand_kind::list && values.parts.size() == all.matrices) {
    for (const auto& part : values.parts) parts.push_back(&part);
  } else {
    memory_operands(values, all.matrices, parts);
  }
  if (!ok_) return;
  for (std::uint32_t n = 0; n < all.matrices; ++n) {
    all.r[n] = all.store ? source(*parts[n], type::b32) : target(*parts[n], type::b32);
  }
  const bool generic = !has("shared") && !has("shared::cta");
  all.row = locate(at(all.store ? 0 : 1), generic ? space::generic : space::shared);
  if (ok_) detail<rows_step>(rows_run) = all;
}

void decoder::do_movmatrix() {
  for (const auto m : {"sync", "aligned", "m8n8", "trans", "b16"}) {
    if (!take(m)) return fail("unsupported form");
  }
  count(2);
  const auto a = source(at(1), type::b32), d = target(at(0), type::b32);
  plain(matrix_transpose, d, {a});
}

void decoder::do_elect() {
  if (!take("sync")) return fail("expected .sync");
  count(2);
  const operand& d = at(0);
  if (!ok_ || d.kind != operand_kind::pair) return fail("expected two destinations");
  const auto leader = target(d.parts[0], type::b32), p = target_predicate(d.parts[1]);
  const auto member = source(at(1), type::u32);
  inst& i = emit(elect);
  i.r[0] = leader, i.r[1] = p, i.r[5] = member;
}

/// What hardware of its own does: tensor maps, warp groups, tensor memory, textures by other names.
void decoder::refuse_by_name() { fail("the cpu device has no " + std::string(now_->name)); }

}  // namespace outboard::ptx
