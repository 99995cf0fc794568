// This machine's files for a build: found when the program requests the build, sent by the thread that waits
// for it. Values.
#pragma once

#include "frontend/opencl/build/sent_files.hh"
#include "frontend/opencl/kinds.hh"
#include "marshal/opencl/build_files.hh"

namespace outboard::frontend::opencl {

struct files_for_build {
  bool any = false;  ///< false: neither texts nor options name files
  marshal::opencl::build_files_body body;
  std::vector<std::string> contents;  ///< the contents of each file
  std::string problem;                ///< why the files cannot be sent; empty: they can
  std::string options;                ///< the program's own; those in the request are for the compiler

  /// Does the back-end accept files, and may the program read any? If so, changes the options of the request.
  static files_for_build find(const std::vector<const program_info*>& programs,
                              marshal::opencl::build_body& request);
  cl_int send();
  /// Changes the build's answer to what the program should see.
  void answered(marshal::opencl::build_reply& reply) const;
};

/// A program's text for the back-end's compiler.
std::string text_for_server(const std::string& source);

}  // namespace outboard::frontend::opencl
