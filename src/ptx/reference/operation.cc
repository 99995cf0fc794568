#include "ptx/reference/operation.hh"

#include <map>

namespace outboard::ptx::reference {
namespace {

const std::map<std::string_view, verb> verbs = {{"add", verb::add},
                                                {"addc", verb::add},
                                                {"sub", verb::sub},
                                                {"subc", verb::sub},
                                                {"mul", verb::mul},
                                                {"mad", verb::mad},
                                                {"fma", verb::fma},
                                                {"div", verb::div},
                                                {"rem", verb::rem},
                                                {"min", verb::min},
                                                {"max", verb::max},
                                                {"neg", verb::neg},
                                                {"abs", verb::abs},
                                                {"not", verb::not_},
                                                {"cnot", verb::cnot},
                                                {"and", verb::and_},
                                                {"or", verb::or_},
                                                {"xor", verb::xor_},
                                                {"shl", verb::shl},
                                                {"shr", verb::shr},
                                                {"sad", verb::sad},
                                                {"popc", verb::popc},
                                                {"clz", verb::clz},
                                                {"brev", verb::brev},
                                                {"bfind", verb::bfind},
                                                {"bfe", verb::bfe},
                                                {"bfi", verb::bfi},
                                                {"lop3", verb::lop3},
                                                {"prmt", verb::prmt},
                                                {"shf", verb::shf},
                                                {"mul24", verb::mul24},
                                                {"mad24", verb::mad24},
                                                {"dp4a", verb::dp4a},
                                                {"sqrt", verb::sqrt},
                                                {"rcp", verb::rcp},
                                                {"copysign", verb::copysign},
                                                {"testp", verb::testp},
                                                {"setp", verb::setp},
                                                {"set", verb::set},
                                                {"selp", verb::selp},
                                                {"slct", verb::slct},
                                                {"mov", verb::mov},
                                                {"cvt", verb::cvt},
                                                {"cvta", verb::cvta},
                                                {"ld", verb::ld},
                                                {"st", verb::st},
                                                {"atom", verb::atom},
                                                {"red", verb::red},
                                                {"bra", verb::bra},
                                                {"call", verb::call},
                                                {"ret", verb::ret},
                                                {"exit", verb::exit},
                                                {"bar", verb::bar},
                                                {"barrier", verb::bar},
                                                {"shfl", verb::shfl},
                                                {"vote", verb::vote},
                                                {"match", verb::match},
                                                {"redux", verb::redux},
                                                {"membar", verb::fence},
                                                {"fence", verb::fence},
                                                {"activemask", verb::activemask}};

const std::map<std::string_view, relation> relations = {
    {"eq", relation::eq},   {"ne", relation::ne},   {"lt", relation::lt},   {"le", relation::le},
    {"gt", relation::gt},   {"ge", relation::ge},   {"lo", relation::lt},   {"ls", relation::le},
    {"hi", relation::gt},   {"hs", relation::ge},   {"equ", relation::equ}, {"neu", relation::neu},
    {"ltu", relation::ltu}, {"leu", relation::leu}, {"gtu", relation::gtu}, {"geu", relation::geu},
    {"num", relation::num}, {"nan", relation::nan}};

const std::map<std::string_view, update> updates = {
    {"add", update::add}, {"min", update::min},  {"max", update::max},   {"and", update::and_},
    {"or", update::or_},  {"xor", update::xor_}, {"exch", update::exch}, {"cas", update::cas},
    {"inc", update::inc}, {"dec", update::dec}};

const std::map<std::string_view, space> spaces = {{"global", space::global},
                                                  {"shared", space::shared},
                                                  {"local", space::local},
                                                  {"param", space::param},
                                                  {"const", space::constant}};

bool compares(verb v) { return v == verb::setp || v == verb::set; }
bool updates_memory(verb v) { return v == verb::atom || v == verb::red || v == verb::redux; }

/// Modifiers that change nothing here, because one thread runs at a time and memory is always coherent.
bool idle(std::string_view m) {
  static constexpr std::string_view words[] = {"lo",       "uni",   "sync", "aligned", "to",      "relaxed",
                                               "volatile", "gpu",   "cta",  "sys",     "acquire", "release",
                                               "nc",       "clamp", "gl",   "sc",      "acq_rel"};
  for (const auto w : words) {
    if (m == w) return true;
  }
  return false;
}

bool flag(operation& o, std::string_view m) {
  const std::map<std::string_view, bool*> flags = {
      {"hi", &o.high},        {"wide", &o.wide}, {"sat", &o.saturates}, {"ftz", &o.flushes},
      {"cc", &o.carries_out}, {"l", &o.left},    {"wrap", &o.wraps},    {"shiftamt", &o.shift_amount},
      {"NaN", &o.nan_wins},   {"warp", &o.warp}};
  if (m == "v2") o.lanes = 2;
  if (m == "v4") o.lanes = 4;
  if (m == "v2" || m == "v4" || m == "r") return true;
  const auto found = flags.find(m);
  if (found == flags.end()) return false;
  *found->second = true;
  return true;
}

bool rounding(operation& o, std::string_view m) {
  if (m.size() < 2 || m.size() > 3 || m[0] != 'r') return false;
  if (m[1] != 'n' && m[1] != 'z' && m[1] != 'm' && m[1] != 'p') return false;
  o.rounding = m[1], o.to_integral = m.size() == 3;
  return m.size() == 2 || m[2] == 'i';
}

bool mode(operation& o, std::string_view m) {
  if (o.what == verb::shfl && (m == "idx" || m == "up" || m == "down" || m == "bfly")) o.mode = m[0];
  if ((o.what == verb::vote || o.what == verb::match) && (m == "all" || m == "uni" || m == "ballot"))
    o.mode = m[0];
  if ((o.what == verb::vote || o.what == verb::match) && m == "any") o.mode = 'o';
  if (o.what == verb::testp)
    o.mode = m == "notanumber" ? 'N' : m == "number" ? 'n' : m == "normal" ? 'r' : m[0];
  return o.mode != 0;
}

}  // namespace

result<operation> operation_of(const instruction& i) {
  operation o;
  const auto v = verbs.find(i.name);
  if (v == verbs.end()) return failure("the reference knows no " + std::string(i.name));
  o.what = v->second;
  o.carries_in = i.name == "addc" || i.name == "subc";
  for (const auto m : i.modifiers) {
    if (const type t = type_of(m); t != type::none) {
      (o.t == type::none ? o.t : o.other) = t;
    } else if (const auto r = relations.find(m);
               compares(o.what) && o.compared == relation::none && r != relations.end()) {
      o.compared = r->second;
    } else if (compares(o.what) && (m == "and" || m == "or" || m == "xor")) {
      o.combined = m == "and" ? '&' : m == "or" ? '|' : '^';
    } else if (const auto u = updates.find(m);
               updates_memory(o.what) && o.by == update::none && u != updates.end()) {
      o.by = u->second;
    } else if (const auto s = spaces.find(m); s != spaces.end()) {
      o.where = s->second;
    } else if (!rounding(o, m) && !flag(o, m) && !idle(m) && (o.mode != 0 || !mode(o, m))) {
      return failure("the reference knows no ." + std::string(m) + " of " + std::string(i.name));
    }
  }
  return o;
}

}  // namespace outboard::ptx::reference
