#include "tool/json_text.hh"

namespace outboard::tool {

std::string json_text(const nlohmann::json& j, int indent, nlohmann::json::error_handler_t otherwise) {
  return j.dump(indent, ' ', false, otherwise);
}

}  // namespace outboard::tool
