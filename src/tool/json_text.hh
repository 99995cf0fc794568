// JSON as text. Here once, because what nlohmann's dump() is made of costs two seconds in each file that
// calls it.
#pragma once

#include <nlohmann/json.hpp>
#include <string>

namespace outboard::tool {

/// j.dump(): on one line where `indent` is negative. By itself it throws json::type_error at a string that is
/// no UTF-8.
std::string json_text(const nlohmann::json& j, int indent = -1,
                      nlohmann::json::error_handler_t otherwise = nlohmann::json::error_handler_t::strict);

/// What the tool prints of it: indented, a line break at the end. Bytes that are no UTF-8 become U+FFFD.
std::string printed_json(const nlohmann::json& j);

}  // namespace outboard::tool
