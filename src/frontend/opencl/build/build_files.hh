// This machine's files that a build needs: found when the program asks for the build, sent by the thread that
// waits for it. Values.
#pragma once

#include "frontend/opencl/build/sent_files.hh"
#include "frontend/opencl/kinds.hh"
#include "marshal/opencl/build_files.hh"

namespace outboard::frontend::opencl {

struct files_for_build {
  bool any = false;  ///< no: neither texts nor options name files
  marshal::opencl::build_files_body body;
  std::vector<std::string> contents;  ///< of each of them
  std::string problem;                ///< why they cannot be sent; empty: they can
  std::string options;                ///< of the program; those in the request are for the compiler

  /// Whether the back-end takes files and the program may read any; then changes the options of the request.
  static files_for_build find(const std::vector<const program_info*>& programs,
                              marshal::opencl::build_body& request);
  cl_int send();
  /// The build's result as the program sees it.
  void answered(marshal::opencl::build_reply& reply) const;
};

/// A program's text as the back-end's compiler gets it.
std::string text_for_server(const std::string& source);

}  // namespace outboard::frontend::opencl
