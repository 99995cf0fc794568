"""The transport example:/path, which is a Unix socket under another name."""
from workshop import Failed

TARGETS = ["base_test", "transport_test"]

HEADER = """// example:/path: a Unix socket under another name.
#pragma once

#include <memory>

#include "transport/make_options.hh"
#include "transport/transport.hh"

namespace outboard::transport {

std::unique_ptr<transport> make_example(const make_options& options = {});

}  // namespace outboard::transport
"""
SOURCE = """#include "transport/example/example.hh"

#include "transport/local.hh"
#include "transport/local_socket.hh"

namespace outboard::transport {

std::unique_ptr<transport> make_example(const make_options&) {
  return make_local("example", &local_connection::make);
}

}  // namespace outboard::transport
"""


def apply(copy):
    copy.append("src/base/schemes.def", 'TRANSPORT(example, "/path", .has_socket_file = true)\n')
    copy.add("src/transport/example/CMakeLists.txt", "# Holds: example:/path. May use: transport, base.\n"
                                                     "outboard_library(transport/example USES transport base)\n")
    copy.add("src/transport/example/example.hh", HEADER)
    copy.add("src/transport/example/example.cc", SOURCE)
    copy.after("src/transport/suite_test.cc", '#include "transport/faulty.hh"', '#include "transport/example/example.hh"\n')
    copy.after("src/transport/suite_test.cc", '{"unix", [] { return make_unix(); }, fresh_path},',
               '      {"example", [] { return make_example(); }, fresh_path},\n')
    copy.replace("tests/house/glossary.py", "engine entries export", "engine entries example export")


def check(shop):
    shop.unit_tests("transport_test", "all/*/example:url.*:registry.*")
    shop.unit_tests("base_test", "*")
    shop.house("include_rules", "scheme_names", "glossary")
    if "example:/path" not in shop.run([shop.program("outboard"), "devices", "--server", "nowhere"], fails=True):
        raise Failed("a wrong address is not answered with all forms that there are")
