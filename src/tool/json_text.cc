#include "tool/json_text.hh"

namespace outboard::tool {

std::string json_text(const nlohmann::json& j, int indent, nlohmann::json::error_handler_t otherwise) {
  return j.dump(indent, ' ', false, otherwise);
}

std::string printed_json(const nlohmann::json& j) {
  return json_text(j, 2, nlohmann::json::error_handler_t::replace) + '\n';
}

}  // namespace outboard::tool
