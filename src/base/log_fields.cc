#include "base/log_fields.hh"

namespace outboard::log {
namespace {

thread_local const std::vector<field>* of_thread = nullptr;
std::vector<field> lasting;

}  // namespace

with_fields::with_fields(std::vector<field> own) : own_(std::move(own)), before_(of_thread) {
  of_thread = &own_;
}

with_fields::~with_fields() { of_thread = before_; }

void set_lasting_fields(std::vector<field> of_process) { lasting = std::move(of_process); }

std::vector<field> fields_of_line() {
  std::vector<field> all = lasting;
  if (of_thread) all.insert(all.end(), of_thread->begin(), of_thread->end());
  return all;
}

}  // namespace outboard::log
