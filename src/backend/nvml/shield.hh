// The entries that a visitor gets instead of the device's own, chapter by chapter. Each function fills its
// part of the table, and the entries find their visitor by current_visitor(). Called once at start; main
// thread.
#pragma once

#include "backend/nvml/visitor.hh"

namespace outboard::backend::nvml {

/// The list of devices has only those that are lent.
void shield_devices(api::nvml::function_table& t);
/// Finds a board of the visitor's by the driver's "PCI format": domain, bus and device in one number.
bool is_lent_board(unsigned pci_id);
/// Names and memory are as the server's configuration says.
void shield_shape(api::nvml::function_table& t);
/// Lists of processes have only the client's own, by its own numbers.
void shield_processes(api::nvml::function_table& t);
/// Objects that a client makes are counted, and forgotten when they are freed. Calls that wait, wait briefly.
void shield_objects(api::nvml::function_table& t);

}  // namespace outboard::backend::nvml
