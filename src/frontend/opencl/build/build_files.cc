#include "frontend/opencl/build/build_files.hh"

#include <set>

#include "frontend/opencl/build/client_files.hh"
#include "frontend/opencl/message.hh"

namespace outboard::frontend::opencl {
namespace {

using marshal::opencl::build_file;
using marshal::opencl::file_bytes;

/// Most programs have no such word, and nothing more is looked at.
bool may_include(std::string_view text) { return text.find("include") != text.npos; }

}  // namespace

files_for_build files_for_build::find(const std::vector<const program_info*>& programs,
                                      marshal::opencl::build_body& request) {
  files_for_build its;
  its.options = request.options;
  std::vector<std::string_view> texts;
  bool wanted = request.options.find("-I") != std::string::npos;
  for (const program_info* each : programs) {
    texts.emplace_back(each->source);
    wanted = wanted || may_include(each->source);
  }
  // Binaries and intermediate languages have been through the preprocessor.
  its.any = wanted && programs.front()->form == program_form::source && link::instance().files() != nullptr;
  if (!its.any) return its;
  client_files found = find_client_files(texts, request.options);
  its.problem = std::move(found.problem);
  its.body.here = found.here;
  its.body.folders = found.folders;
  for (auto& [path, text] : found.files) {
    its.body.files.push_back({path, sha256(std::as_bytes(std::span(text))), text.size(), file_bytes::once});
    its.contents.push_back(std::move(text));
  }
  if (its.body.folders.size() > marshal::opencl::most_build_files && its.problem.empty())
    its.problem = "its #include lines lead through more than " +
                  std::to_string(marshal::opencl::most_build_files) + " folders";
  request.options = options_for_compiler(its.options, found, marshal::opencl::name_of_set(its.body));
  request.has_options = true;
  return its;
}

cl_int files_for_build::send() {
  sent_files* const known = link::instance().files();
  if (!any || !known) return CL_SUCCESS;
  std::vector<std::byte> bytes;
  std::set<sha256_digest> along;
  for (std::size_t i = 0; i < body.files.size(); ++i) {
    build_file& file = body.files[i];
    file.bytes = known->way_for(file.digest, file.size);
    if (file.bytes == file_bytes::kept && !along.insert(file.digest).second) file.bytes = file_bytes::known;
    if (file.bytes == file_bytes::known) continue;
    const auto text = std::as_bytes(std::span(contents[i]));
    bytes.insert(bytes.end(), text.begin(), text.end());
  }
  sent_bytes way;
  if (const cl_int code = send_bytes(bytes, way); code != CL_SUCCESS) return code;
  body.contents = way.about;
  message m(service::build_files);
  marshal::put_body(m.body(), body);
  return m.post(way.rest);
}

void files_for_build::answered(marshal::opencl::build_reply& reply) const {
  if (!any) return;
  if (sent_files* const known = link::instance().files()) known->arrived(body.files);
  for (auto& device : reply.devices) {
    device.options = options;
    device.log = log_for_program(std::move(device.log));
  }
}

std::string text_for_server(const std::string& source) {
  return may_include(source) && link::instance().files() ? text_for_compiler(source) : source;
}

}  // namespace outboard::frontend::opencl
